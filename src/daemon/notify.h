/*
 * daemon/notify: messages to systemd over NOTIFY_SOCKET.
 *
 * No effect without it. Send failures are logged at debug level.
 */
#ifndef DAEMON_NOTIFY_H
#define DAEMON_NOTIFY_H

#include <stdint.h>

#include "base/must.h"

/*
 * notify_ready(format, ...) / notify_stopping(format, ...) / notify_status(format, ...):
 * Report readiness; report shutdown; report neither. All set the line in `systemctl status`.
 *
 * Thread: main
 * Source: sd_notify(3): READY, MAINPID, STOPPING, STATUS
 */
void notify_ready(const char *format, ...) PRINTF_LIKE(1, 2);
void notify_stopping(const char *format, ...) PRINTF_LIKE(1, 2);
void notify_status(const char *format, ...) PRINTF_LIKE(1, 2);

/*
 * notify_extend(extend_ns):
 * Extend the stop timeout to ${extend_ns} from now, beyond TimeoutStopSec.
 *
 * Thread: main
 * Source: sd_notify(3): EXTEND_TIMEOUT_USEC
 */
void notify_extend(int64_t extend_ns);

/*
 * notify_watchdog_interval_ns():
 * Return half of systemd's watchdog timeout; CLOCK_NEVER: no watchdog. Log invalid settings.
 *
 * Thread: main
 * Source: sd_watchdog_enabled(3): WATCHDOG_USEC, WATCHDOG_PID
 */
int64_t notify_watchdog_interval_ns(void);

/*
 * notify_watchdog():
 * Feed the watchdog.
 *
 * Thread: main
 * Source: sd_notify(3): WATCHDOG
 */
void notify_watchdog(void);

#endif
