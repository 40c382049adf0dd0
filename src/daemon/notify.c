#include "daemon/notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define STATUS_BYTES      256
#define ASSIGNMENTS_BYTES 64 /* lines before STATUS */

/* Message with an FDNAME, which has 255 bytes at most. */
#define NOTIFY_STORE_BYTES 320

static atomic_bool is_not_main; /* see notify_set_main() */

static int notify_send_state(const char *state)
{
    int rc = atomic_load(&is_not_main) ? 0 : sd_notify(0, state);

    if (rc < 0)
        log_debug("systemd cannot be notified: %s", strerror(-rc));
    return rc;
}

static void PRINTF_LIKE(2, 0) send_status(const char *assignments, const char *format, va_list args)
{
    char status[STATUS_BYTES], state[ASSIGNMENTS_BYTES + STATUS_BYTES + sizeof("STATUS=\n")];

    vsnprintf(status, sizeof(status), format, args);
    snprintf(state, sizeof(state), "%sSTATUS=%s\n", assignments, status);
    (void)notify_send_state(state);
}

void notify_ready(const char *format, ...)
{
    char assignments[ASSIGNMENTS_BYTES];
    va_list args;

    snprintf(assignments, sizeof(assignments), "READY=1\nMAINPID=%ld\n", (long)getpid());
    va_start(args, format);
    send_status(assignments, format, args);
    va_end(args);
}

void notify_reloading(const char *format, ...)
{
    char assignments[ASSIGNMENTS_BYTES];
    va_list args;

    snprintf(assignments, sizeof(assignments), "RELOADING=1\nMONOTONIC_USEC=%" PRId64 "\n",
             clock_now_ns() / NS_PER_US);
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

void notify_set_main(bool is_main)
{
    atomic_store(&is_not_main, !is_main);
}

int notify_hand_over(pid_t pid)
{
    char state[ASSIGNMENTS_BYTES];
    int rc;

    snprintf(state, sizeof(state), "WATCHDOG=1\nMAINPID=%ld\n", (long)pid);
    rc = notify_send_state(state);
    if (rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM || rc == -ENOBUFS)
        return rc;
    notify_set_main(false);
    return 0;
}

void notify_extend(int64_t extend_ns)
{
    char state[64];

    snprintf(state, sizeof(state), "EXTEND_TIMEOUT_USEC=%" PRId64 "\n", extend_ns / NS_PER_US);
    (void)notify_send_state(state);
}

int64_t notify_watchdog_interval_ns(void)
{
    uint64_t period_us;
    int rc = sd_watchdog_enabled(0, &period_us);

    if (rc < 0)
        log_warning("systemd's watchdog is not fed: WATCHDOG_USEC or WATCHDOG_PID is invalid: %s",
                    strerror(-rc));
    if (rc <= 0 || period_us > (uint64_t)(CLOCK_NEVER / NS_PER_US))
        return CLOCK_NEVER;
    return (int64_t)period_us * NS_PER_US / 2;
}

void notify_watchdog(void)
{
    (void)notify_send_state("WATCHDOG=1");
}

int notify_store(const char *name, int fd)
{
    char state[NOTIFY_STORE_BYTES];
    int rc;

    snprintf(state, sizeof(state), "FDSTORE=1\nFDNAME=%s\n", name);
    rc = atomic_load(&is_not_main) ? 0 : sd_pid_notify_with_fds(0, 0, state, &fd, 1);
    return rc < 0 ? rc : 0;
}

void notify_unstore(const char *name)
{
    char state[NOTIFY_STORE_BYTES];

    snprintf(state, sizeof(state), "FDSTOREREMOVE=1\nFDNAME=%s\n", name);
    (void)notify_send_state(state);
}
