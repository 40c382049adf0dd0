/*
 * support/suite: what every test program does around its cases.
 */
#ifndef SUPPORT_SUITE_H
#define SUPPORT_SUITE_H

#include <check.h>

/* A case may take this long before check kills it: room for sanitizers on a busy machine. */
#define SUITE_CASE_SECONDS 60

/*
 * suite_group(suite, name):
 * A new group of cases in ${suite}, with a time limit that suits threads.
 *
 * Thread: the test's
 * Owns:   ${suite} owns the group
 */
TCase *suite_group(Suite *suite, const char *name);

/*
 * suite_run(suite):
 * Run ${suite} as the environment says (CK_VERBOSITY, CK_RUN_CASE, CK_FORK ...) and free it. The
 * result is for main() to return.
 *
 * Thread: the test's
 * Owns:   takes ${suite}
 * Errors: EXIT_SUCCESS; EXIT_FAILURE (a case failed)
 */
int suite_run(Suite *suite);

#endif
