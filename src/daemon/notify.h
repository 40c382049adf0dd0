/*
 * daemon/notify: what systemd is told, over the socket in NOTIFY_SOCKET.
 *
 * Without a service manager there is no such socket and every function here does nothing. A message
 * that cannot be sent is logged at debug level and changes nothing else.
 */
#ifndef DAEMON_NOTIFY_H
#define DAEMON_NOTIFY_H

#include <stdint.h>

#include "base/must.h"

/*
 * notify_ready(format, ...) / notify_stopping(format, ...) / notify_status(format, ...):
 * Connections are accepted; the end has begun; only the one line of text that `systemctl status`
 * shows, which the other two set as well.
 *
 * Thread: main
 * Source: sd_notify(3): READY, MAINPID, STOPPING, STATUS
 */
void notify_ready(const char *format, ...) PRINTF_LIKE(1, 2);
void notify_stopping(const char *format, ...) PRINTF_LIKE(1, 2);
void notify_status(const char *format, ...) PRINTF_LIKE(1, 2);

/*
 * notify_extend(extend_ns):
 * The stop goes on: do not kill us for ${extend_ns} from now, whatever TimeoutStopSec says.
 *
 * Thread: main
 * Units:  ${extend_ns} ns
 * Source: sd_notify(3): EXTEND_TIMEOUT_USEC
 */
void notify_extend(int64_t extend_ns);

/*
 * notify_watchdog_interval_ns():
 * How often notify_watchdog() is to be called: twice in the time after which systemd takes us for
 * dead, or never if it does not watch this process. What it says about that and cannot be
 * understood is logged.
 *
 * Thread: main
 * Units:  ns
 * Errors: CLOCK_NEVER
 * Source: sd_watchdog_enabled(3): WATCHDOG_USEC, WATCHDOG_PID
 */
int64_t notify_watchdog_interval_ns(void);

/*
 * notify_watchdog():
 * We are alive.
 *
 * Thread: main
 * Source: sd_notify(3): WATCHDOG
 */
void notify_watchdog(void);

#endif
