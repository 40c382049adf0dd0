/*
 * daemon/access_logs: the access logs of all listeners, each open once, however many listeners
 * share it.
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
 * Open what the listeners of ${conf} log to, for ${user}. What fails is logged with its name.
 *
 * Thread: main, before any other thread
 * Owns:   the caller owns ${out}; ${conf} and ${user} are borrowed
 * Units:  ${buffer_bytes} of lines that may wait for each
 * Errors: 0; as log_target_open()
 */
int access_logs_open(struct access_logs **out, const struct server_conf *conf, size_t buffer_bytes,
                     const struct privileges *user) NODISCARD;

/*
 * access_logs_find(logs, where):
 * The log that a listener with `access_log = ${where}` writes to. As server_events.access_log, with
 * ${logs} for its cookie.
 *
 * Thread: main
 * Errors: NULL (off)
 */
struct access_log *access_logs_find(void *logs, const char *where);

/*
 * access_logs_reopen(logs):
 * As log_target_reopen(), for all of them. What fails is logged, and stays in use as it is. NULL is
 * allowed.
 *
 * Thread: main
 */
void access_logs_reopen(struct access_logs *logs);

/*
 * access_logs_log_stats(logs):
 * Write what they counted to the log, at notice level, a line for each. NULL is allowed.
 *
 * Thread: main
 */
void access_logs_log_stats(const struct access_logs *logs);

/*
 * access_logs_finish(logs):
 * Write what waits, within two seconds for all of them together; what is not taken by then is lost,
 * and said. Call it once.
 *
 * Thread: main, after the server was stopped
 * Errors: 0; -ETIMEDOUT (some thread hangs: nothing may be closed)
 */
int access_logs_finish(struct access_logs *logs) NODISCARD;

/*
 * access_logs_close(logs):
 * Close and free; NULL is allowed.
 *
 * Thread: main, after access_logs_finish(), or if no listener ever started
 */
void access_logs_close(struct access_logs *logs);

#endif
