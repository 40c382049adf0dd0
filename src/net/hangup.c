/* net/hangup: see hangup.h. */
#include "net/hangup.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/ready.h"

/* Events per call; the rest follow next turn. */
#define HANGUP_BATCH 64

static struct hangup_watch *hangup_first(struct list *l)
{
    return LIST_FIRST(l, struct hangup_watch, link);
}

static void hangup_move(struct hangup_watch *w, struct list *to)
{
    list_remove(&w->link);
    list_append(to, &w->link);
}

static void hangup_move_all(struct list *from, struct list *to)
{
    while (!list_empty(from))
        hangup_move(hangup_first(from), to);
}

/* Once for each pause. */
static void hangup_report(struct hangup *h, struct hangup_watch *w)
{
    hangup_move(w, &h->reported);
    w->event(w);
}

/* Schedule the next step of settling sockets, else the next probe. */
static void hangup_arm(struct hangup *h)
{
    bool settles = !list_empty(&h->fresh) || !list_empty(&h->settling);
    int64_t after_ns = HANGUP_SETTLE_NS;

    if (h->timer.state != TIMER_IDLE) {
        if (!settles || h->timer_settles)
            return;
        loop_cancel(h->loop, &h->timer);
    }
    if (!settles) {
        if (list_empty(&h->refused))
            return;
        after_ns = h->probe_at_ns - clock_now_ns();
    }
    h->timer_settles = settles;
    loop_schedule(h->loop, &h->timer, after_ns > 0 ? after_ns : 0);
}

/* ---- registering ---- */

static void hangup_refuse(struct hangup *h, struct hangup_watch *w, int error)
{
    if (!h->logged)
        log_warning("loop %s: a paused connection cannot be watched for a reset: %s; such "
                    "connections are polled once a second",
                    loop_name(h->loop), strerror(error));
    h->logged = true;
    hangup_move(w, &h->refused);
}

static void hangup_register(struct hangup *h, struct hangup_watch *w)
{
    struct epoll_event none = {.events = EPOLLONESHOT, .data.ptr = w};

    if (epoll_ctl(h->fd, EPOLL_CTL_ADD, w->fd, &none) < 0) {
        hangup_refuse(h, w, errno);
        return;
    }
    w->registered = true;
    hangup_move(w, &h->registered);
}

/* libev cannot watch the epoll instance. */
static void hangup_lose_instance(struct hangup *h)
{
    close(h->fd);
    h->fd = -1;
    while (!list_empty(&h->registered)) {
        struct hangup_watch *w = hangup_first(&h->registered);

        w->registered = false;
        hangup_refuse(h, w, ENOMEM);
    }
    hangup_arm(h);
}

static void hangup_on_event(struct ev_loop *ev, struct ev_io *io, int revents)
{
    struct hangup *h = CONTAINER_OF(io, struct hangup, io);
    struct epoll_event events[HANGUP_BATCH];
    int n;

    if (!ready_in_order(ev, io, revents))
        return;
    loop_set_activity(h->loop, "hangup");
    if (revents & EV_ERROR) {
        hangup_lose_instance(h);
        return;
    }
    n = epoll_wait(h->fd, events, HANGUP_BATCH, 0);
    for (int i = 0; i < n; i++) {
        struct hangup_watch *w = events[i].data.ptr;

        if (w->registered) /* its pause may have ended by an event before */
            hangup_report(h, w);
    }
}

/* ---- the timer ---- */

/* Retry to register each refused socket, else poll it. Events change the list. */
static void hangup_probe(struct hangup *h)
{
    struct list due;

    list_init(&due);
    hangup_move_all(&h->refused, &due);
    while (!list_empty(&due)) {
        struct hangup_watch *w = hangup_first(&due);
        struct pollfd p = {.fd = w->fd};

        hangup_register(h, w);
        if (!w->registered && poll(&p, 1, 0) > 0)
            hangup_report(h, w);
    }
}

static void hangup_run_timer(struct task *t)
{
    struct hangup *h = CONTAINER_OF(CONTAINER_OF(t, struct timer, task), struct hangup, timer);
    int64_t now_ns = clock_now_ns();

    if (!ev_is_active(&h->io) && h->fd >= 0)
        ev_io_start(loop_ev(h->loop), &h->io);
    while (!list_empty(&h->settling))
        hangup_register(h, hangup_first(&h->settling));
    hangup_move_all(&h->fresh, &h->settling);
    if (now_ns >= h->probe_at_ns) {
        h->probe_at_ns = clock_add_ns(now_ns, HANGUP_PROBE_NS);
        hangup_probe(h);
    }
    hangup_arm(h);
}

static void hangup_drop_timer(struct task *t)
{
    (void)t; /* the loop ends: its channels are aborted */
}

static const struct task_type hangup_timer_type = {
    .name = "hangup", .run = hangup_run_timer, .drop = hangup_drop_timer};

/* ---- life ---- */

int hangup_open(struct hangup *h, struct loop *loop)
{
    *h = (struct hangup){.loop = loop, .fd = epoll_create1(EPOLL_CLOEXEC)};
    if (h->fd < 0)
        return -errno;
    ev_io_init(&h->io, hangup_on_event, h->fd, EV_READ);
    timer_init(&h->timer, &hangup_timer_type);
    list_init(&h->fresh);
    list_init(&h->settling);
    list_init(&h->registered);
    list_init(&h->refused);
    list_init(&h->reported);
    return 0;
}

void hangup_close(struct hangup *h)
{
    if (h->fd >= 0)
        close(h->fd);
    h->fd = -1;
}

void hangup_listen(struct hangup *h, struct hangup_watch *w, int fd)
{
    if (!list_empty(&w->link))
        return;
    w->fd = fd;
    list_append(&h->fresh, &w->link);
    hangup_arm(h);
}

void hangup_leave(struct hangup *h, struct hangup_watch *w)
{
    if (w->registered)
        (void)epoll_ctl(h->fd, EPOLL_CTL_DEL, w->fd, NULL);
    w->registered = false;
    list_remove(&w->link);
}
