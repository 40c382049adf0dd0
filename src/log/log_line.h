/*
 * log/log_line: layout of a log line.
 *
 *   LOG_LINE_PLAIN     2026-11-21T12:00:00.123Z reactord[1234] info work-2-1: text
 *   LOG_LINE_PRIORITY  <6>work-2-1: text
 *   LOG_LINE_SYSLOG    as a message of its syslog_conf:
 *     SYSLOG_RFC3164   <30>Nov 21 12:00:00 HOST reactord[1234]: work-2-1: text
 *     SYSLOG_RFC5424   <30>1 2026-11-21T12:00:00.123Z HOST reactord 1234 - - work-2-1: text
 *     SYSLOG_JOURNAL   PRIORITY=6 SYSLOG_FACILITY=3 SYSLOG_IDENTIFIER=reactord
 *                      REACTORD_THREAD=work-2-1 MESSAGE=text, one field per line
 *
 * Backslashes and bytes other than printable ASCII are escaped as \n, \r, \t, \\ or \xNN: so no
 * input can forge a line.
 */
#ifndef LOG_LOG_LINE_H
#define LOG_LOG_LINE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"

struct syslog_conf;

enum log_line_layout { LOG_LINE_PLAIN, LOG_LINE_PRIORITY, LOG_LINE_SYSLOG };

struct log_line_form {
    enum log_line_layout layout;
    const struct syslog_conf *syslog; /* of LOG_LINE_SYSLOG */
};

/* A write of this size to a pipe is atomic (pipe(7)): lines of several threads never mix. */
#define LOG_LINE_MAX_BYTES PIPE_BUF

struct log_line {
    size_t len;
    char data[LOG_LINE_MAX_BYTES];
};

/*
 * log_line_build(line, form, level, text):
 * Build ${line} from ${text}, time, process and calling thread, with a newline except for syslog. A
 * truncated line ends in "...": it has syslog_conf.max_bytes at most.
 *
 * Thread: any (each thread takes libc's time zone lock once a second)
 */
void log_line_build(struct log_line *line, const struct log_line_form *form, enum log_level level,
                    const char *text);

/*
 * log_line_head(line, form, level, thread):
 * Build the part before the text; ${thread} NULL: without a thread name.
 *
 * Thread: as log_line_build()
 */
void log_line_head(struct log_line *line, const struct log_line_form *form, enum log_level level,
                   const char *thread);

/* log_line_has_newline(form): does a message of ${form} end in a newline? */
bool log_line_has_newline(const struct log_line_form *form);

#endif
