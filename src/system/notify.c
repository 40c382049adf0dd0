#include "system/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "system/notify_socket.h"
#include "engine/lock.h"

#define STATUS_BYTES      256
#define ASSIGNMENTS_BYTES 64 /* lines before STATUS */

/* Message with an FDNAME, which has 255 bytes at most. */
#define NOTIFY_STORE_BYTES 320

/* Interval of attempts to send what waits. */
#define NOTIFY_RETRY_NS (100 * NS_PER_MS)

/* A message that waits is superseded by a later one with the same topic; not so NOTIFY_STORE. */
enum notify_topic {
    NOTIFY_READY,
    NOTIFY_RELOADING,
    NOTIFY_STOPPING,
    NOTIFY_STATUS,
    NOTIFY_EXTEND,
    NOTIFY_WATCHDOG,
    NOTIFY_STORE,
    NOTIFY_UNSTORE
};

struct notify_message {
    struct notify_message *next;
    enum notify_topic topic;
    int fd; /* -1: none */
    char text[];
};

/* Messages that the service manager did not take yet, in their order; guarded by the lock. */
static struct notify {
    struct lock lock;
    struct notify_message *waiting;
    int64_t retry_at_ns;
    bool is_not_main; /* see notify_set_main() */
    bool is_late;     /* it was logged that messages wait */
} notify = {.lock = LOCK_INITIALIZER};

static void notify_message_free(struct notify_message *m)
{
    if (m->fd >= 0)
        close(m->fd);
    free(m);
}

/* The name in a message of notify_store() or notify_unstore(). */
static const char *notify_name(const char *text)
{
    return strstr(text, "FDNAME=");
}

static bool notify_is_superseded(const struct notify_message *m, enum notify_topic by,
                                 const char *text)
{
    if (by == NOTIFY_UNSTORE)
        return (m->topic == NOTIFY_STORE || m->topic == NOTIFY_UNSTORE) &&
               strcmp(notify_name(m->text), notify_name(text)) == 0;
    return m->topic == by && by != NOTIFY_STORE;
}

/* Remove the superseded messages; return the place for the next one. */
static struct notify_message **notify_remove_superseded(enum notify_topic by, const char *text)
{
    struct notify_message **at = &notify.waiting;

    while (*at) {
        struct notify_message *m = *at;

        if (!notify_is_superseded(m, by, text)) {
            at = &m->next;
            continue;
        }
        *at = m->next;
        notify_message_free(m);
    }
    return at;
}

static int notify_keep(struct notify_message **at, enum notify_topic topic, const char *text,
                       int fd)
{
    size_t size = strlen(text) + 1;
    struct notify_message *m = malloc(sizeof(*m) + size);
    int rc;

    if (!m)
        return -ENOMEM;
    *m = (struct notify_message){.topic = topic, .fd = -1};
    memcpy(m->text, text, size);
    if (fd >= 0)
        m->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (fd >= 0 && m->fd < 0) {
        rc = -errno;
        free(m);
        return rc;
    }
    if (!notify.waiting)
        notify.retry_at_ns = clock_add_ns(clock_now_ns(), NOTIFY_RETRY_NS);
    *at = m;
    return 0;
}

/* Send ${text}, or keep it for notify_retry() if the service manager does not take it now. */
static int notify_post(enum notify_topic topic, const char *text, int fd)
{
    struct notify_message **at;
    bool is_late = false;
    int rc = 0;

    lock_take(&notify.lock);
    at = notify_remove_superseded(topic, text);
    if (!notify.is_not_main)
        rc = notify.waiting ? -EAGAIN : notify_socket_send(text, fd);
    if (notify_socket_is_transient(rc)) {
        rc = notify_keep(at, topic, text, fd);
        is_late = rc == 0 && !notify.is_late;
        notify.is_late = notify.is_late || is_late;
    }
    lock_release(&notify.lock);
    if (is_late)
        log_warning("systemd takes no messages from NOTIFY_SOCKET now: they are sent later");
    if (rc < 0)
        log_debug("systemd cannot be notified: %s", strerror(-rc));
    return rc;
}

/* Send what waits, in order. Returns whether all was sent. */
static bool notify_send_waiting(void)
{
    struct notify_message *m;

    while ((m = notify.waiting)) {
        if (notify_socket_is_transient(notify_socket_send(m->text, m->fd)))
            return false;
        notify.waiting = m->next;
        notify_message_free(m);
    }
    return true;
}

int64_t notify_retry_at_ns(void)
{
    int64_t at_ns;

    lock_take(&notify.lock);
    at_ns = notify.waiting ? notify.retry_at_ns : CLOCK_NEVER;
    lock_release(&notify.lock);
    return at_ns;
}

void notify_retry(void)
{
    int64_t now_ns = clock_now_ns();
    bool recovered = false;

    lock_take(&notify.lock);
    if (notify.waiting && now_ns >= notify.retry_at_ns) {
        recovered = notify_send_waiting();
        notify.is_late = !recovered;
        notify.retry_at_ns = clock_add_ns(now_ns, NOTIFY_RETRY_NS);
    }
    lock_release(&notify.lock);
    if (recovered)
        log_notice("systemd takes messages from NOTIFY_SOCKET again");
}

static void PRINTF_LIKE(3, 0) notify_send_status(enum notify_topic topic, const char *assignments,
                                                 const char *format, va_list args)
{
    char status[STATUS_BYTES], state[ASSIGNMENTS_BYTES + STATUS_BYTES + sizeof("STATUS=\n")];

    vsnprintf(status, sizeof(status), format, args);
    snprintf(state, sizeof(state), "%sSTATUS=%s\n", assignments, status);
    (void)notify_post(topic, state, -1);
}

void notify_ready(const char *format, ...)
{
    char assignments[ASSIGNMENTS_BYTES];
    va_list args;

    snprintf(assignments, sizeof(assignments), "READY=1\nMAINPID=%ld\n", (long)getpid());
    va_start(args, format);
    notify_send_status(NOTIFY_READY, assignments, format, args);
    va_end(args);
}

void notify_reloading(const char *format, ...)
{
    char assignments[ASSIGNMENTS_BYTES];
    va_list args;

    snprintf(assignments, sizeof(assignments), "RELOADING=1\nMONOTONIC_USEC=%" PRId64 "\n",
             clock_now_ns() / NS_PER_US);
    va_start(args, format);
    notify_send_status(NOTIFY_RELOADING, assignments, format, args);
    va_end(args);
}

void notify_stopping(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    notify_send_status(NOTIFY_STOPPING, "STOPPING=1\n", format, args);
    va_end(args);
}

void notify_status(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    notify_send_status(NOTIFY_STATUS, "", format, args);
    va_end(args);
}

void notify_set_main(bool is_main)
{
    struct notify_message *m;

    lock_take(&notify.lock);
    notify.is_not_main = !is_main;
    notify.is_late = notify.is_late && is_main;
    while (!is_main && (m = notify.waiting)) {
        notify.waiting = m->next;
        notify_message_free(m);
    }
    lock_release(&notify.lock);
}

int notify_hand_over(pid_t pid)
{
    char state[ASSIGNMENTS_BYTES];
    int rc = 0;

    snprintf(state, sizeof(state), "WATCHDOG=1\nMAINPID=%ld\n", (long)pid);
    lock_take(&notify.lock);
    if (!notify.is_not_main)
        rc = notify_send_waiting() ? notify_socket_send(state, -1) : -EAGAIN;
    lock_release(&notify.lock);
    if (notify_socket_is_transient(rc))
        return rc;
    notify_set_main(false);
    return 0;
}

void notify_extend(int64_t extend_ns)
{
    char state[64];

    snprintf(state, sizeof(state), "EXTEND_TIMEOUT_USEC=%" PRId64 "\n", extend_ns / NS_PER_US);
    (void)notify_post(NOTIFY_EXTEND, state, -1);
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
    (void)notify_post(NOTIFY_WATCHDOG, "WATCHDOG=1", -1);
}

int notify_store(const char *name, int fd)
{
    char state[NOTIFY_STORE_BYTES];

    snprintf(state, sizeof(state), "FDSTORE=1\nFDNAME=%s\n", name);
    return notify_post(NOTIFY_STORE, state, fd);
}

void notify_unstore(const char *name)
{
    char state[NOTIFY_STORE_BYTES];

    snprintf(state, sizeof(state), "FDSTOREREMOVE=1\nFDNAME=%s\n", name);
    (void)notify_post(NOTIFY_UNSTORE, state, -1);
}
