/* support/suite: see suite.h. */
#include "support/suite.h"

#include <stdlib.h>

TCase *suite_group(Suite *suite, const char *name)
{
    TCase *group = tcase_create(name);

    tcase_set_timeout(group, SUITE_CASE_SECONDS);
    suite_add_tcase(suite, group);
    return group;
}

int suite_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
