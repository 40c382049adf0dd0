/* daemon/notify: see notify.h. */
#include "daemon/notify.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define STATUS_BYTES 256

static void notify_send_state(const char *state)
{
    int rc = sd_notify(0, state);

    if (rc < 0)
        log_debug("systemd cannot be notified: %s", strerror(-rc));
}

static void PRINTF_LIKE(2, 0) send_status(const char *assignments, const char *format, va_list args)
{
    char status[STATUS_BYTES], state[STATUS_BYTES + 64];

    vsnprintf(status, sizeof(status), format, args);
    snprintf(state, sizeof(state), "%sSTATUS=%s\n", assignments, status);
    notify_send_state(state);
}

void notify_ready(const char *format, ...)
{
    char assignments[48];
    va_list args;

    snprintf(assignments, sizeof(assignments), "READY=1\nMAINPID=%ld\n", (long)getpid());
    va_start(args, format);
    send_status(assignments, format, args);
    va_end(args);
}

void notify_stopping(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    send_status("STOPPING=1\n", format, args);
    va_end(args);
}

void notify_status(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    send_status("", format, args);
    va_end(args);
}

void notify_extend(int64_t extend_ns)
{
    char state[64];

    snprintf(state, sizeof(state), "EXTEND_TIMEOUT_USEC=%" PRId64 "\n", extend_ns / NS_PER_US);
    notify_send_state(state);
}

int64_t notify_watchdog_interval_ns(void)
{
    uint64_t period_us;
    int rc = sd_watchdog_enabled(0, &period_us);

    if (rc < 0)
        log_warning("systemd's watchdog is not fed: WATCHDOG_USEC or WATCHDOG_PID: %s",
                    strerror(-rc));
    if (rc <= 0 || period_us > (uint64_t)(CLOCK_NEVER / NS_PER_US))
        return CLOCK_NEVER;
    return (int64_t)period_us * NS_PER_US / 2;
}

void notify_watchdog(void)
{
    notify_send_state("WATCHDOG=1");
}
