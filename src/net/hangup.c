#include "net/hangup.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/ready.h"

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

/* When the timer must run; CLOCK_NEVER: not at all. */
static int64_t hangup_next_at_ns(const struct hangup *h)
{
    int64_t at_ns = CLOCK_NEVER;

    if (!list_empty(&h->to_poll))
        return 0;
    if (!list_empty(&h->just_paused) || !list_empty(&h->still_paused))
        at_ns = h->register_at_ns;
    if ((!list_empty(&h->polled) || h->unwatched) && h->probe_at_ns < at_ns)
        at_ns = h->probe_at_ns;
    return at_ns;
}

static void hangup_arm(struct hangup *h)
{
    int64_t at_ns = hangup_next_at_ns(h), after_ns;

    if (h->timer.state != TIMER_IDLE) {
        if (at_ns >= h->timer_at_ns)
            return;
        loop_cancel(h->loop, &h->timer);
    }
    if (at_ns == CLOCK_NEVER)
        return;
    h->timer_at_ns = at_ns;
    after_ns = at_ns - clock_now_ns();
    loop_schedule(h->loop, &h->timer, after_ns > 0 ? after_ns : 0);
}

static void hangup_report(struct hangup *h, struct hangup_watch *w, bool is_error)
{
    w->hung_up = true;
    hangup_move(w, is_error ? &h->reported : &h->polled);
    hangup_arm(h);
    w->event(w);
}

static void hangup_log_refusal(struct hangup *h, int error)
{
    if (!h->logged)
        log_warning("loop %s: a paused connection cannot be watched for a reset: %s; such "
                    "connections are polled once a second",
                    loop_name(h->loop), strerror(error));
    h->logged = true;
}

/* ev_io_set() makes libev call epoll_ctl(2) again, even in the turn in which the call failed. */
static void hangup_watch_instance(struct hangup *h)
{
    h->unwatched = false;
    ev_io_set(&h->io, h->fd, EV_READ);
    ev_io_start(loop_ev(h->loop), &h->io);
}

static int hangup_control(const struct hangup *h, struct hangup_watch *w, int op)
{
    struct epoll_event events = {.events = EPOLLONESHOT, .data.ptr = w};

    if (w->wants_end)
        events.events |= EPOLLRDHUP;
    return epoll_ctl(h->fd, op, w->fd, &events);
}

/* Watch ${w} on, for what it still wants; after a failure it is polled. */
static void hangup_modify(struct hangup *h, struct hangup_watch *w)
{
    if (hangup_control(h, w, EPOLL_CTL_MOD) == 0)
        return;
    hangup_log_refusal(h, errno);
    (void)epoll_ctl(h->fd, EPOLL_CTL_DEL, w->fd, NULL);
    w->registered = false;
    hangup_move(w, &h->polled);
    hangup_arm(h);
}

static void hangup_report_end(struct hangup *h, struct hangup_watch *w)
{
    w->wants_end = false;
    if (w->registered)
        hangup_modify(h, w);
    w->event(w);
}

static void hangup_register(struct hangup *h, struct hangup_watch *w)
{
    if (hangup_control(h, w, EPOLL_CTL_ADD) < 0) {
        hangup_log_refusal(h, errno);
        hangup_move(w, &h->polled);
        return;
    }
    w->registered = true;
    hangup_move(w, &h->registered);
    if (!ev_is_active(&h->io) && !h->unwatched)
        hangup_watch_instance(h);
}

/*
 * After EV_ERROR libev has stopped the watcher, but events may be pending: read them. If the batch
 * was full, watch again now, else at the next probe.
 */
static void hangup_on_event(struct ev_loop *ev, struct ev_io *io, int revents)
{
    struct hangup *h = CONTAINER_OF(io, struct hangup, io);
    struct epoll_event events[HANGUP_BATCH];
    int n;

    if (!ready_in_order(ev, io, revents))
        return;
    loop_set_activity(h->loop, "hangup");
    n = epoll_wait(h->fd, events, HANGUP_BATCH, 0);
    for (int i = 0; i < n; i++) {
        struct hangup_watch *w = events[i].data.ptr;

        if (!w->registered) /* the callback of an earlier event has unregistered it */
            continue;
        if (events[i].events & (EPOLLERR | EPOLLHUP))
            hangup_report(h, w, events[i].events & EPOLLERR);
        else
            hangup_report_end(h, w);
    }
    if (!(revents & EV_ERROR))
        return;
    hangup_log_refusal(h, ENOMEM);
    h->unwatched = true;
    if (n == HANGUP_BATCH)
        hangup_watch_instance(h);
    hangup_arm(h);
}

static void hangup_settle(struct hangup *h, int64_t now_ns, unsigned *left)
{
    for (; *left > 0 && !list_empty(&h->still_paused); --*left)
        hangup_register(h, hangup_first(&h->still_paused));
    if (!list_empty(&h->still_paused))
        return;
    list_append_all(&h->still_paused, &h->just_paused);
    h->register_at_ns = clock_add_ns(now_ns, HANGUP_SETTLE_NS);
}

static void hangup_poll(struct hangup *h, struct hangup_watch *w)
{
    struct pollfd p = {.fd = w->fd, .events = w->wants_end ? POLLRDHUP : 0};
    bool is_error;

    if (!w->hung_up)
        hangup_register(h, w);
    if ((w->registered && !w->hung_up) || poll(&p, 1, 0) <= 0)
        return;
    is_error = p.revents & POLLERR;
    if (is_error || ((p.revents & POLLHUP) && !w->hung_up))
        hangup_report(h, w, is_error);
    else if (p.revents & POLLRDHUP)
        hangup_report_end(h, w);
}

/* Callbacks may change the lists: take one socket at a time. */
static void hangup_probe(struct hangup *h, int64_t now_ns, unsigned left)
{
    if (now_ns >= h->probe_at_ns) {
        h->probe_at_ns = clock_add_ns(now_ns, HANGUP_PROBE_NS);
        list_append_all(&h->to_poll, &h->polled);
        if (h->unwatched)
            hangup_watch_instance(h);
    }
    for (; left > 0 && !list_empty(&h->to_poll); left--) {
        struct hangup_watch *w = hangup_first(&h->to_poll);

        hangup_move(w, &h->polled);
        hangup_poll(h, w);
    }
}

static void hangup_run_timer(struct task *t)
{
    struct hangup *h = TIMER_OWNER(t, struct hangup, timer);
    int64_t now_ns = clock_now_ns();
    unsigned left = HANGUP_RUN;

    if (now_ns >= h->register_at_ns)
        hangup_settle(h, now_ns, &left);
    hangup_probe(h, now_ns, left);
    hangup_arm(h);
}

/* No drop(): its channels are aborted. */
static const struct task_type hangup_timer_type = {.name = "hangup", .run = hangup_run_timer};

void hangup_close(struct hangup *h)
{
    if (h->fd >= 0)
        close(h->fd);
    h->fd = -1;
}

int hangup_open(struct hangup *h, struct loop *loop)
{
    *h = (struct hangup){.loop = loop, .fd = epoll_create1(EPOLL_CLOEXEC)};
    if (h->fd < 0)
        return -errno;
    if (loop_reserve_fd(loop, h->fd) < 0) {
        hangup_close(h);
        return -ENOMEM;
    }
    ev_io_init(&h->io, hangup_on_event, h->fd, EV_READ);
    timer_init(&h->timer, &hangup_timer_type);
    list_init(&h->just_paused);
    list_init(&h->still_paused);
    list_init(&h->registered);
    list_init(&h->polled);
    list_init(&h->to_poll);
    list_init(&h->reported);
    return 0;
}

void hangup_listen(struct hangup *h, struct hangup_watch *w, int fd)
{
    if (!list_empty(&w->link))
        return;
    w->fd = fd;
    if (list_empty(&h->just_paused) && list_empty(&h->still_paused))
        h->register_at_ns = clock_add_ns(clock_now_ns(), HANGUP_SETTLE_NS);
    list_append(&h->just_paused, &w->link);
    hangup_arm(h);
}

void hangup_leave(struct hangup *h, struct hangup_watch *w)
{
    if (w->registered)
        (void)epoll_ctl(h->fd, EPOLL_CTL_DEL, w->fd, NULL);
    w->registered = false;
    w->hung_up = false;
    w->wants_end = false;
    list_remove(&w->link);
}

/* After EPOLLHUP the socket is polled. */
void hangup_listen_end(struct hangup *h, struct hangup_watch *w)
{
    MUST(!list_empty(&w->link));
    w->wants_end = true;
    if (w->registered && !w->hung_up)
        hangup_modify(h, w);
}
