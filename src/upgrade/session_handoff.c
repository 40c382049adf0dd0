#include "upgrade/session_handoff.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "upgrade/epoll_set.h"
#include "upgrade/hand_over.h"
#include "handover/handoff_figures.h"
#include "handover/session_message.h"
#include "handover/sessions_export.h"
#include "handover/sessions_import.h"
#include "server/server.h"

#define SESSION_HANDOFF_TICK_NS (20 * NS_PER_MS)

/* Interval at which the new process gets figures. */
#define SESSION_HANDOFF_TELL_NS (100 * NS_PER_MS)

/* Time for the new process to say whether it wants sessions. */
#define SESSION_HANDOFF_WANT_NS (5 * NS_PER_S)

enum session_handoff_state {
    SESSION_HANDOFF_IDLE,
    SESSION_HANDOFF_OFFERED,
    SESSION_HANDOFF_EXPORTING,
    SESSION_HANDOFF_IMPORTING
};

struct session_handoff {
    struct server *server;
    enum session_handoff_state state;
    int fd; /* of OFFERED and EXPORTING */
    int epoll_fd, timer_fd;
    int64_t began_at_ns;
    int64_t told_at_ns;             /* when the new process got figures */
    struct handoff_figures figures; /* of the last hand-off */
    struct sessions_export *export;
    struct sessions_import *import;
};

static void session_handoff_tick(const struct session_handoff *h, int64_t every_ns)
{
    struct itimerspec when = {.it_value = {.tv_nsec = every_ns},
                              .it_interval = {.tv_nsec = every_ns}};

    (void)timerfd_settime(h->timer_fd, 0, &when, NULL);
}

static int session_handoff_open(struct session_handoff *h)
{
    h->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (h->epoll_fd < 0)
        return -errno;
    h->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    return h->timer_fd < 0 ? -errno : epoll_set_add(h->epoll_fd, h->timer_fd);
}

int session_handoff_create(struct session_handoff **out, struct server *sv)
{
    struct session_handoff *h = calloc(1, sizeof(*h));
    int rc;

    if (!h)
        return -ENOMEM;
    h->server = sv;
    h->fd = h->epoll_fd = h->timer_fd = -1;
    rc = session_handoff_open(h);
    if (rc < 0) {
        session_handoff_destroy(h);
        return rc;
    }
    *out = h;
    return 0;
}

int session_handoff_fd(const struct session_handoff *h)
{
    return h->epoll_fd;
}

void session_handoff_figures(const struct session_handoff *h, struct handoff_figures *out)
{
    *out = h->figures;
}

bool session_handoff_is_under_way(const struct session_handoff *h)
{
    return h->state != SESSION_HANDOFF_IDLE;
}

/* ---- old process ---- */

static void session_handoff_close(struct session_handoff *h)
{
    if (h->fd >= 0) {
        epoll_set_remove(h->epoll_fd, h->fd);
        close(h->fd);
    }
    h->fd = -1;
    h->state = SESSION_HANDOFF_IDLE;
    session_handoff_tick(h, 0);
}

/* All sessions stay. */
static void session_handoff_give_up(struct session_handoff *h)
{
    session_handoff_close(h);
    server_drain(h->server);
}

void session_handoff_offer(struct session_handoff *h, int fd)
{
    int ends[2], rc = session_message_open(ends);

    h->began_at_ns = clock_now_ns();
    if (rc < 0) {
        log_warning("upgrade: no session is handed over: %s", strerror(-rc));
        server_drain(h->server);
        return;
    }
    h->fd = ends[0];
    h->state = SESSION_HANDOFF_OFFERED;
    rc = epoll_set_add(h->epoll_fd, h->fd);
    if (rc == 0)
        rc = hand_over_send(fd, "sessions", ends[1]);
    close(ends[1]);
    if (rc < 0)
        session_handoff_give_up(h);
    else
        session_handoff_tick(h, SESSION_HANDOFF_TICK_NS);
}

static void session_handoff_begin_export(struct session_handoff *h, uint64_t rate)
{
    int rc = sessions_export_begin(&h->export, h->server, h->fd, rate < 1 ? 1 : (unsigned)rate);

    if (rc == 0) {
        h->state = SESSION_HANDOFF_EXPORTING;
        return;
    }
    log_warning("upgrade: no session is handed over: %s", strerror(-rc));
    session_handoff_give_up(h);
}

static void session_handoff_step_offered(struct session_handoff *h)
{
    uint8_t buffer[SESSION_MESSAGE_INLINE_BYTES];
    struct session_message m;
    struct session_message_body body;
    int rc = session_message_receive(h->fd, &m, &body, buffer);

    if (rc == 0 && m.type == SESSION_MESSAGE_WANT && body.n_fds == 0 && m.number <= UINT32_MAX)
        session_handoff_begin_export(h, m.number);
    else if (rc != -EAGAIN || clock_now_ns() - h->began_at_ns > SESSION_HANDOFF_WANT_NS)
        session_handoff_give_up(h); /* it takes none */
    if (rc == 0)
        session_message_drop(&body, buffer);
}

/* Append ` REASON N` for each reason to stay. */
static void session_handoff_write_stayed(char *text, size_t size,
                                         const struct handoff_figures *figures)
{
    size_t len = 0;

    *text = '\0';
    for (unsigned i = SESSION_STAYS_NOT + 1; i < SESSION_STAYS && len < size; i++)
        if (figures->stayed[i] > 0)
            len += (size_t)snprintf(text + len, size - len, "%s%s %" PRIu64,
                                    len > 0 ? ", " : "; they stay: ",
                                    session_stay_word((enum session_stay)i), figures->stayed[i]);
}

static void session_handoff_log_export(const struct session_handoff *h)
{
    char stayed[512];

    session_handoff_write_stayed(stayed, sizeof(stayed), &h->figures);
    log_event(LOG_UPGRADE, LOG_LEVEL_NOTICE,
              "upgrade: sessions handed over to the new process: %" PRIu64 " in %" PRId64 " ms%s",
              h->figures.moved, (clock_now_ns() - h->began_at_ns) / NS_PER_MS, stayed);
}

static void session_handoff_tell(const struct session_handoff *h, enum session_message_type type)
{
    const struct session_message m = {.type = type};
    const struct session_message_body body = {.data = (const uint8_t *)&h->figures,
                                              .n = sizeof(h->figures)};

    (void)!session_message_send(h->fd, &m, &body); /* it may have ended */
}

static void session_handoff_tell_at_times(struct session_handoff *h)
{
    int64_t now_ns = clock_now_ns();

    if (now_ns - h->told_at_ns < SESSION_HANDOFF_TELL_NS)
        return;
    h->told_at_ns = now_ns;
    session_handoff_tell(h, SESSION_MESSAGE_FIGURES);
}

static void session_handoff_step_export(struct session_handoff *h)
{
    sessions_export_step(h->export);
    if (sessions_export_is_through(h->export))
        server_drain(h->server);
    sessions_export_figures(h->export, &h->figures);
    if (h->figures.under_way) {
        session_handoff_tell_at_times(h);
        return;
    }
    session_handoff_tell(h, SESSION_MESSAGE_OVER);
    session_handoff_log_export(h);
    sessions_export_destroy(h->export);
    h->export = NULL;
    session_handoff_close(h);
}

/* ---- new process ---- */

void session_handoff_take(struct session_handoff *h, int fd, unsigned rate)
{
    int rc;

    if (rate == 0 || session_handoff_is_under_way(h)) {
        close(fd);
        return;
    }
    rc = sessions_import_begin(&h->import, h->server, fd, rate);
    if (rc < 0) {
        log_warning("upgrade: no session is taken over: %s",
                    rc == -EPERM ? "the process before is of another user" : strerror(-rc));
        return;
    }
    h->state = SESSION_HANDOFF_IMPORTING;
    if (epoll_set_add(h->epoll_fd, sessions_import_fd(h->import)) < 0)
        log_debug("upgrade: messages are polled"); /* by the timer */
    session_handoff_tick(h, SESSION_HANDOFF_TICK_NS);
}

static void session_handoff_step_import(struct session_handoff *h)
{
    bool is_over = sessions_import_step(h->import);

    sessions_import_figures(h->import, &h->figures);
    if (!is_over)
        return;
    h->figures.under_way = false;
    epoll_set_remove(h->epoll_fd, sessions_import_fd(h->import));
    sessions_import_destroy(h->import);
    h->import = NULL;
    h->state = SESSION_HANDOFF_IDLE;
    session_handoff_tick(h, 0);
}

/* ---- both ---- */

void session_handoff_step(struct session_handoff *h)
{
    uint64_t ticks;

    (void)!read(h->timer_fd, &ticks, sizeof(ticks));
    switch (h->state) {
    case SESSION_HANDOFF_IDLE: break;
    case SESSION_HANDOFF_OFFERED: session_handoff_step_offered(h); break;
    case SESSION_HANDOFF_EXPORTING: session_handoff_step_export(h); break;
    case SESSION_HANDOFF_IMPORTING: session_handoff_step_import(h); break;
    }
}

void session_handoff_stop(struct session_handoff *h)
{
    if (h->state == SESSION_HANDOFF_OFFERED)
        session_handoff_give_up(h);
    if (h->export)
        sessions_export_stop(h->export);
    if (h->import) {
        sessions_import_stop(h->import);
        session_handoff_step_import(h);
    }
}

void session_handoff_destroy(struct session_handoff *h)
{
    if (!h)
        return;
    sessions_export_destroy(h->export);
    sessions_import_destroy(h->import);
    if (h->fd >= 0)
        close(h->fd);
    if (h->timer_fd >= 0)
        close(h->timer_fd);
    if (h->epoll_fd >= 0)
        close(h->epoll_fd);
    free(h);
}
