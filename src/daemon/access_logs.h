/*
 * daemon/access_logs: access logs of all listeners, each opened once.
 */
#ifndef DAEMON_ACCESS_LOGS_H
#define DAEMON_ACCESS_LOGS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/must.h"

struct access_log;
struct access_logs;
struct privileges;
struct server_conf;

/*
 * access_logs_open(out, conf, buffer_bytes, user):
 * Open the access logs in ${conf} for ${user}, each with a queue of ${buffer_bytes}. Log failures.
 *
 * Thread: main, before any other thread
 * Owns:   ${conf} and ${user} are borrowed
 * Errors: 0; as log_target_open()
 */
int access_logs_open(struct access_logs **out, const struct server_conf *conf, size_t buffer_bytes,
                     const struct privileges *user) NODISCARD;

/*
 * access_logs_find(logs, where):
 * Return the log for `access_log = ${where}`; NULL: off. Implements server_events.access_log.
 *
 * Thread: main
 */
struct access_log *access_logs_find(void *logs, const char *where);

/*
 * access_logs_reopen(logs):
 * Reopen all; after a logged failure the old file stays in use. NULL is allowed.
 *
 * Thread: main
 */
void access_logs_reopen(struct access_logs *logs);

/*
 * access_logs_log_stats(logs):
 * Log the counters at notice level; NULL is allowed.
 *
 * Thread: main
 */
void access_logs_log_stats(const struct access_logs *logs);

/*
 * access_logs_finish(logs):
 * Write all queues within two seconds; drop and log the rest. Call once.
 *
 * Thread: main, after the server has stopped
 * Errors: 0; -ETIMEDOUT (a thread hangs: close nothing)
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
