/*
 * system/notify: messages to systemd over NOTIFY_SOCKET.
 *
 * Without NOTIFY_SOCKET nothing is sent. No function blocks: while systemd does not read the
 * socket, the last message of each kind waits, in order, and notify_retry() sends it. Other
 * failures are logged at debug level.
 */
#ifndef SYSTEM_NOTIFY_H
#define SYSTEM_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/must.h"

/*
 * notify_ready(format, ...) / notify_stopping(format, ...) / notify_status(format, ...):
 * Report readiness / report shutdown / only set the status. All set the status line of `systemctl
 * status`.
 *
 * Thread: any
 * Source: sd_notify(3): READY, MAINPID, STOPPING, STATUS
 */
void notify_ready(const char *format, ...) PRINTF_LIKE(1, 2);
void notify_stopping(const char *format, ...) PRINTF_LIKE(1, 2);
void notify_status(const char *format, ...) PRINTF_LIKE(1, 2);

/*
 * notify_reloading(format, ...):
 * Report the start of a reload; notify_ready() reports its end, successful or not.
 *
 * Thread: any
 * Source: sd_notify(3): RELOADING, MONOTONIC_USEC (systemd 253)
 */
void notify_reloading(const char *format, ...) PRINTF_LIKE(1, 2);

/*
 * notify_hand_over(pid):
 * Feed the watchdog, report ${pid} as the main process, then notify_set_main(false). An error
 * changes nothing.
 *
 * Errors: 0, also when the service manager is gone; -EAGAIN (it does not read its socket); -EMFILE,
 *         -ENFILE, -ENOMEM, -ENOBUFS
 * Source: sd_notify(3): MAINPID
 */
int notify_hand_over(pid_t pid) NODISCARD;

/*
 * notify_set_main(is_main):
 * Set whether this is the main process. If not, nothing is sent, and what waits is dropped: only
 * one process may talk to systemd.
 *
 * Source: systemd.service(5): NotifyAccess
 */
void notify_set_main(bool is_main);

/*
 * notify_extend(extend_ns):
 * Extend the stop timeout to ${extend_ns} from now, beyond TimeoutStopSec.
 *
 * Source: sd_notify(3): EXTEND_TIMEOUT_USEC
 */
void notify_extend(int64_t extend_ns);

/*
 * notify_watchdog_interval_ns():
 * Half of systemd's watchdog timeout; CLOCK_NEVER: no watchdog. Logs invalid settings.
 *
 * Source: sd_watchdog_enabled(3): WATCHDOG_USEC, WATCHDOG_PID
 */
int64_t notify_watchdog_interval_ns(void);

/*
 * notify_watchdog():
 * Feed the watchdog.
 *
 * Source: sd_notify(3): WATCHDOG
 */
void notify_watchdog(void);

/*
 * notify_store(name, fd) / notify_unstore(name):
 * Let systemd keep a copy of ${fd} as ${name} for the next process, if FileDescriptorStoreMax
 * allows / let systemd close all copies with this name.
 *
 * Thread: any
 * Owns:   ${fd} is duplicated if the message has to wait
 * Errors: 0, also if the message waits; -errno of the socket (notify_unstore(): logged at debug
 *         level)
 * Source: sd_notify(3): FDSTORE, FDSTOREREMOVE, FDNAME
 */
int notify_store(const char *name, int fd) NODISCARD;
void notify_unstore(const char *name);

/*
 * notify_retry_at_ns() / notify_retry():
 * When to call notify_retry(); CLOCK_NEVER: no message waits / if due, send what waits.
 */
int64_t notify_retry_at_ns(void);
void notify_retry(void);

#endif
