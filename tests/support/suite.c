/* support/suite: see suite.h. */
#include "support/suite.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"

#define SUITES_MAX 512

static struct suite_case *suite_first;
static struct suite_case *suite_last;

static bool suite_is_before(const struct suite_case *a, const struct suite_case *b)
{
    int files = strcmp(a->test.file, b->test.file);

    return files < 0 || (files == 0 && a->test.line < b->test.line);
}

/* Constructors run in any order; mostly in that of the files, where one look finds the place. */
void suite_add(struct suite_case *c, int first, int end)
{
    bool is_last = suite_last && suite_is_before(suite_last, c);
    struct suite_case **at = is_last ? &suite_last->next : &suite_first;

    c->first = first;
    c->end = end;
    while (*at && suite_is_before(*at, c))
        at = &(*at)->next;
    c->next = *at;
    *at = c;
    if (!c->next)
        suite_last = c;
}

/* "net/channel" of "tests/unit/net/test_channel.c". */
static Suite *suite_of(const char *path)
{
    static char names[SUITES_MAX][64]; /* suite_create() keeps the pointer */
    static unsigned n;
    const char *file = strstr(path, "/test_"), *folder = file;
    char *name = names[n];

    MUST(file && n++ < SUITES_MAX);
    while (folder > path && folder[-1] != '/')
        folder--;
    file += strlen("/test_");
    snprintf(name, sizeof(names[0]), "%.*s/%.*s", (int)strcspn(folder, "/"), folder,
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

/* A name that no suite has runs nothing, and that is no success. */
int suite_run(void)
{
    SRunner *runner = srunner_create(NULL);
    const char *file = "";
    Suite *suite = NULL;
    bool passed;

    for (struct suite_case *c = suite_first; c; c = c->next) {
        if (strcmp(c->test.file, file) != 0) {
            file = c->test.file;
            suite = suite_of(file);
            srunner_add_suite(runner, suite);
        }
        _tcase_add_test(suite_cases(suite, c->group), &c->test, c->signal, 0, c->first, c->end);
    }
    srunner_run_all(runner, CK_ENV);
    passed = srunner_ntests_failed(runner) == 0 && srunner_ntests_run(runner) > 0;
    srunner_free(runner);
    return passed ? EXIT_SUCCESS : EXIT_FAILURE;
}
