/*
 * support/log_lines: what was logged during a test.
 */
#ifndef SUPPORT_LOG_LINES_H
#define SUPPORT_LOG_LINES_H

#include "base/log.h"

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

#endif
