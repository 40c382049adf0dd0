/*
 * support/suite: the cases of unit tests, which main() of tests/unit/main.c runs, a suite for each
 * file, in the order of their lines:
 *
 *     GROUP(reading, setup, teardown);
 *
 *     TEST(reading, a_short_message_is_one_read)
 *     {
 *         ...
 *     }
 *
 * Thread: the test's
 */
#ifndef SUPPORT_SUITE_H
#define SUPPORT_SUITE_H

#include <check.h>
#include <signal.h>
#include <stddef.h>

/* A case may take this long before check kills it: room for sanitizers on a busy machine. */
#define SUITE_CASE_SECONDS 60

/* Cases with the same fixture. ${setup} and ${teardown} run in each case's process; or NULL. */
#define GROUP(group, setup, teardown) GROUP_WITHIN(group, setup, teardown, SUITE_CASE_SECONDS)

/* The same for cases that may take ${seconds}. */
#define GROUP_WITHIN(group, setup, teardown, seconds) \
    static struct suite_group suite_group_##group = {#group, setup, teardown, seconds, NULL}

/* A case of ${group}. */
#define TEST(group, name) SUITE_CASE(group, name, 0, 0, 1)

/* A case for each ${_i} below ${n}; from ${first} to below ${end}. */
#define TEST_EACH(group, name, n)           SUITE_CASE(group, name, 0, 0, n)
#define TEST_RANGE(group, name, first, end) SUITE_CASE(group, name, 0, first, end)

/* A case that must end by abort(), as MUST() does. */
#define TEST_ABORTS(group, name)         SUITE_CASE(group, name, SIGABRT, 0, 1)
#define TEST_EACH_ABORTS(group, name, n) SUITE_CASE(group, name, SIGABRT, 0, n)

struct suite_group {
    const char *name;
    void (*setup)(void);
    void (*teardown)(void);
    double seconds;
    TCase *cases; /* NULL: none yet */
};

struct suite_case {
    TTest test;
    struct suite_group *group;
    int signal; /* 0: the case returns */
    int first, end;
    struct suite_case *next;
};

#define SUITE_CASE(group_name, name, signal, first, end)                                       \
    static void name(int _i);                                                                  \
    __attribute__((constructor)) static void name##_add(void)                                  \
    {                                                                                          \
        static struct suite_case suite_c = {                                                   \
            {#name, name, __FILE__, __LINE__}, &suite_group_##group_name, signal, 0, 0, NULL}; \
                                                                                               \
        suite_add(&suite_c, (int)(first), (int)(end));                                         \
    }                                                                                          \
    static void name(int _i __attribute__((unused)))

/*
 * suite_add(c, first, end):
 * Add ${c} for each ${_i} from ${first} to below ${end}.
 *
 * Thread: the main one, before main()
 */
void suite_add(struct suite_case *c, int first, int end);

/*
 * suite_run():
 * Run the cases as the environment says (CK_VERBOSITY, CK_RUN_SUITE, CK_RUN_CASE, CK_FORK ...).
 *
 * Errors: EXIT_SUCCESS; EXIT_FAILURE (a case failed)
 */
int suite_run(void);

#endif
