/*
 * log/log_target: log destinations.
 *
 *   stderr    plain lines; with a priority when connected to the journal (JOURNAL_STREAM)
 *   /path     plain lines
 *   syslog    messages to syslog (option/option_syslog, log/log_socket)
 *   journal   fields, with REACTORD_THREAD
 *
 * One non-blocking system call writes a line (log/log_line). Lines that cannot be written (full
 * disk or pipe, no reader) are lost, and their number is logged with the next line.
 * log_target_put_lines() returns an error instead.
 */
#ifndef LOG_LOG_TARGET_H
#define LOG_LOG_TARGET_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/log.h"
#include "base/must.h"

struct log_target;
struct privileges;

/*
 * log_target_open(out, where, user):
 * Open ${where}: "stderr", an absolute path, or as option_syslog_parse(). A new file gets mode 0640 and
 * belongs to ${user} (NULL: the process's user), so that this user can reopen it
 * (system/safe_open).
 *
 * Thread: main, before any other thread, unless ${user} is the process's user
 * Owns:   ${where} is copied; ${user} must outlive the target
 * Errors: 0; -ENOMEM; as safe_open(); -EINVAL; -errno of socket(2)
 */
int log_target_open(struct log_target **out, const char *where,
                    const struct privileges *user) NODISCARD;

/* log_target_error(lt): 0; or -errno: syslog or the journal could not be connected to at first. */
int log_target_error(const struct log_target *lt);

/*
 * log_target_describe(where):
 * Return the text for messages: ${where}, and the path of syslog or the journal.
 *
 * Thread: any
 */
const char *log_target_describe(const char *where);

/* log_target_sink(lt): the sink for log_set_sink(). Thread: any */
const struct log_sink *log_target_sink(const struct log_target *lt);

/*
 * log_target_put_lines(lt, lines, len):
 * Write whole lines unchanged, without blocking. A file takes all lines; a pipe or terminal takes
 * PIPE_BUF bytes at most; syslog and journal get messages, as log_socket_put_lines().
 *
 * Thread: any; one call at a time, to keep the order
 * Errors: bytes written, > 0; -EAGAIN; -errno of write(2) or send(2)
 */
ssize_t log_target_put_lines(struct log_target *lt, const char *lines, size_t len) NODISCARD;

/* log_target_recovered(lt): as log_socket_recovered(); a file has. Thread: as put_lines() */
bool log_target_recovered(struct log_target *lt);

/*
 * log_target_reopen(lt):
 * Reopen a file after rotation, under the same descriptor number, because threads log without a
 * lock.
 *
 * Errors: 0; as safe_open() (the old file stays in use)
 */
int log_target_reopen(struct log_target *lt) NODISCARD;

/* log_target_reopen_and_log(lt): as log_target_reopen(), and log the result. */
void log_target_reopen_and_log(struct log_target *lt);

/*
 * log_target_offer(lt) / log_target_take(lt, cut):
 * As log_target_reopen(), for a target with one writer: open the new file / if there is one, switch
 * to it, after ending a line that was ${cut} in the old one; true: switched.
 *
 * Thread: main / the thread that calls log_target_put_lines()
 * Errors: as log_target_reopen()
 */
int log_target_offer(struct log_target *lt) NODISCARD;
bool log_target_take(struct log_target *lt, bool cut);

/*
 * log_target_may_reopen(lt):
 * Would log_target_reopen() be permitted for the file that is now at the path?
 *
 * Errors: 0; -errno of access(2)
 */
int log_target_may_reopen(const struct log_target *lt) NODISCARD;

/*
 * log_target_close(lt):
 * Close and free ${lt}. If it is the sink of the log, lines go to stderr again. NULL is allowed.
 *
 * Thread: any, after the last line; for the target of the log: main, after all other threads have
 *         ended
 */
void log_target_close(struct log_target *lt);

#endif
