/*
 * support/log_lines: what was logged during a test.
 */
#ifndef SUPPORT_LOG_LINES_H
#define SUPPORT_LOG_LINES_H

#include "base/log.h"
#include "support/until.h"

/*
 * log_lines_capture(level):
 * From now on keep the lines at ${level} and above instead of writing them.
 *
 * Thread: before start
 */
void log_lines_capture(enum log_level level);

/*
 * log_lines_with(text):
 * How many of the lines contain ${text}.
 *
 * Thread: any
 */
unsigned log_lines_with(const char *text);

/*
 * EXPECT_LOG_LINES(text, n):
 * See that ${n} lines contain ${text}: another thread may be about to log the last one.
 */
#define EXPECT_LOG_LINES(text, n)                     \
    do {                                              \
        UNTIL(log_lines_with(text) >= (unsigned)(n)); \
        ck_assert_uint_eq(log_lines_with(text), (n)); \
    } while (0)

/*
 * log_lines_last():
 * The last line, "" if there was none.
 *
 * Thread: the test's, while no other one logs
 */
const char *log_lines_last(void);

/*
 * log_lines_expect(text, pattern):
 * See that ${text} matches the extended regular expression ${pattern}.
 *
 * Thread: any
 * Errors: the test fails
 */
void log_lines_expect(const char *text, const char *pattern);

#endif
