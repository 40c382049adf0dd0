/*
 * daemon/log_line: layout of a log line.
 *
 *   LOG_LINE_PLAIN     2026-11-21T12:00:00.123Z reactord[1234] info work-2-1: text
 *   LOG_LINE_PRIORITY  <6>work-2-1: text
 *   LOG_LINE_SYSLOG    <30>Nov 21 12:00:00 reactord[1234]: work-2-1: text
 *   LOG_LINE_JOURNAL   PRIORITY=6 SYSLOG_FACILITY=3 SYSLOG_IDENTIFIER=reactord
 *                      REACTORD_THREAD=work-2-1 MESSAGE=text, one field per line
 *
 * Backslashes and bytes other than printable ASCII are escaped as \n, \r, \t, \\ or \xNN: so no
 * input can forge a line.
 */
#ifndef DAEMON_LOG_LINE_H
#define DAEMON_LOG_LINE_H

#include <limits.h>
#include <stddef.h>

#include "base/log.h"

enum log_line_layout { LOG_LINE_PLAIN, LOG_LINE_PRIORITY, LOG_LINE_SYSLOG, LOG_LINE_JOURNAL };

/* A write of this size to a pipe is atomic (pipe(7)): lines of several threads never mix. */
#define LOG_LINE_MAX_BYTES PIPE_BUF

struct log_line {
    size_t len;
    char data[LOG_LINE_MAX_BYTES];
};

/*
 * log_line_build(line, layout, level, text):
 * Build ${line} from ${text}, time, process and calling thread, with a newline except for syslog. A
 * truncated line ends in "...".
 *
 * Thread: any (each thread takes libc's time zone lock once a second)
 */
void log_line_build(struct log_line *line, enum log_line_layout layout, enum log_level level,
                    const char *text);

/*
 * log_line_head(line, layout, level, thread):
 * Build the part before the text; ${thread} NULL: without a thread name.
 *
 * Thread: as log_line_build()
 */
void log_line_head(struct log_line *line, enum log_line_layout layout, enum log_level level,
                   const char *thread);

#endif
