/*
 * log/access_logs: access logs; listeners with the same `access_log` share one.
 *
 *   prepare -> commit or cancel        for each configuration, including the first
 *
 * A log that is no longer configured stays open while it has users (access_log_hold()). Then the
 * main thread closes it: see access_logs_close_unused().
 */
#ifndef LOG_ACCESS_LOGS_H
#define LOG_ACCESS_LOGS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/must.h"

struct access_log;
struct access_logs;
struct access_logs_change;
struct figure_visitor;
struct privileges;
struct server_conf;

/*
 * access_logs_create(out, user):
 * Create an empty set. Files are opened for ${user}: see log_target_open().
 *
 * Thread: main, before any other thread
 * Owns:   ${user} must outlive ${out}
 * Errors: 0; -ENOMEM; -EMFILE, -ENFILE
 */
int access_logs_create(struct access_logs **out, const struct privileges *user) NODISCARD;

/*
 * access_logs_prepare(logs, conf, buffer_bytes, out):
 * Hold the logs that ${conf} names (access_log_hold()); open those that are missing. Failures to
 * open are logged.
 *
 * Thread: main, one change at a time
 * Owns:   ${conf} is used during the call only; the caller commits or cancels ${out}
 * Errors: 0; -ENOMEM; as log_target_open()
 */
int access_logs_prepare(struct access_logs *logs, const struct server_conf *conf,
                        size_t buffer_bytes, struct access_logs_change **out) NODISCARD;

/*
 * access_logs_change_find(change, where):
 * Find the log for `access_log = ${where}` of the new configuration; NULL: off. Implements
 * server_events.access_log and server_reload.access_log.
 *
 * Thread: any, before commit or cancel
 */
struct access_log *access_logs_change_find(void *change, const char *where);

/*
 * access_logs_commit(change):
 * Use the logs of ${change} from now on, and set their buffer_bytes.
 *
 * Owns:   frees ${change}
 */
void access_logs_commit(struct access_logs_change *change);

/*
 * access_logs_cancel(change):
 * Close the logs that access_logs_prepare() opened, and release the others. NULL is allowed.
 *
 * Owns:   frees ${change}
 */
void access_logs_cancel(struct access_logs_change *change);

/*
 * access_logs_fd(logs):
 * Descriptor that is readable when access_logs_close_unused() has work; -1 for NULL.
 */
int access_logs_fd(const struct access_logs *logs);

/*
 * access_logs_close_unused(logs):
 * Close logs that are not configured and have no users. A log with queued lines gets two seconds to
 * write them. Return when to call this function again; CLOCK_NEVER: only when access_logs_fd() is
 * readable. NULL is allowed.
 */
int64_t access_logs_close_unused(struct access_logs *logs);

/*
 * access_logs_reopen(logs):
 * Reopen all logs; after a failure, which is logged, the old file stays in use. NULL is allowed.
 */
void access_logs_reopen(struct access_logs *logs);

/* access_logs_check_user(logs): warn of each log that the process's user cannot reopen */
void access_logs_check_user(struct access_logs *logs);

/*
 * access_logs_figures(logs, v):
 * Visit the figures of each configured log; NULL is allowed.
 *
 * Thread: any
 */
void access_logs_figures(struct access_logs *logs, struct figure_visitor *v);

/* access_logs_log_stats(logs): log the counters at notice level; NULL is allowed. */
void access_logs_log_stats(struct access_logs *logs);

/*
 * access_logs_finish(logs):
 * Write the queued lines of all logs for two seconds at most; drop the rest and log its number.
 * Call once.
 *
 * Thread: main, after the server has stopped
 * Errors: 0; -ETIMEDOUT (a log's thread hangs: close nothing)
 */
int access_logs_finish(struct access_logs *logs) NODISCARD;

/*
 * access_logs_close(logs):
 * Close ${logs} or NULL.
 *
 * Thread: main, after access_logs_finish(), or if no listener ever started
 */
void access_logs_close(struct access_logs *logs);

#endif
