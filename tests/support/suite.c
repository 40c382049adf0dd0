/* support/suite: see suite.h. */
#include "support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"

static struct suite_case *suite_first;

/* Constructors run in any order. */
void suite_add(struct suite_case *c, int first, int end)
{
    struct suite_case **at = &suite_first;

    c->first = first;
    c->end = end;
    while (*at && (*at)->test.line < c->test.line)
        at = &(*at)->next;
    c->next = *at;
    *at = c;
}

/* "net/channel" of "tests/unit/net/test_channel.c". */
static Suite *suite_of(const char *path)
{
    const char *file = strstr(path, "/test_"), *folder = file;
    static char name[256]; /* suite_create() keeps the pointer */

    MUST(file);
    while (folder > path && folder[-1] != '/')
        folder--;
    file += strlen("/test_");
    snprintf(name, sizeof(name), "%.*s/%.*s", (int)strcspn(folder, "/"), folder,
             (int)strcspn(file, "."), file);
    return suite_create(name);
}

static TCase *suite_cases(Suite *suite, struct suite_group *group)
{
    if (group->cases)
        return group->cases;
    group->cases = tcase_create(group->name);
    tcase_set_timeout(group->cases, group->seconds);
    tcase_add_checked_fixture(group->cases, group->setup, group->teardown);
    suite_add_tcase(suite, group->cases);
    return group->cases;
}

int suite_run(void)
{
    Suite *suite = suite_of(suite_first->test.file);
    SRunner *runner = srunner_create(suite);
    int failed;

    for (struct suite_case *c = suite_first; c; c = c->next)
        _tcase_add_test(suite_cases(suite, c->group), &c->test, c->signal, 0, c->first, c->end);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
