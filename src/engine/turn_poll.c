/* engine/turn_poll: steps 1 and 2 of a turn. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "engine/loop_internal.h"

/* libev ends every poll after about a minute; that is not early. */
#define TURN_POLL_MAX_NS (59 * NS_PER_S)

/* Tolerance for early polls: epoll_wait counts milliseconds. */
#define TURN_POLL_SLACK_NS (2 * NS_PER_MS)

static void turn_poll_on_wakeup(struct ev_loop *ev, struct ev_io *w, int revents)
{
    struct loop *l = CONTAINER_OF(w, struct loop, wakeup_io);

    (void)ev;
    if (revents & EV_ERROR)
        l->wakeup_lost = true; /* libev stopped the watcher: see turn_poll_find_wakeup() */
    else
        wakeup_clear(&l->wakeup);
    l->woken = true;
    l->io_events--;
}

static void turn_poll_on_timer(struct ev_loop *ev, struct ev_timer *w, int revents)
{
    struct loop *l = CONTAINER_OF(w, struct loop, timer);

    (void)ev;
    (void)revents;
    l->timer_at_ns = CLOCK_NEVER;
    l->ran = true;
    l->io_events--;
}

/*
 * See note: absence in heard.h. When it began during a sleep is not known: after a signal, assume
 * the sleep's begin; after a late return, as long before the sleep's deadline as behind it.
 */
static void turn_poll_note_absence(struct loop *l)
{
    int64_t late_ns = l->turn_at_ns - l->sleep_until_ns, gone_at_ns = l->sleep_at_ns;

    if (l->sleep_until_ns > 0 && l->backend.error != EINTR) {
        if (late_ns < HEARD_ABSENCE_NS)
            return;
        gone_at_ns = clock_later(gone_at_ns, l->sleep_until_ns - late_ns);
    }
    heard_note_absence(&l->heard, gone_at_ns, l->turn_at_ns);
}

/* Before the callbacks run, which set deadlines by it. */
static inline __attribute__((always_inline)) void turn_poll_begin(struct loop *l)
{
    if (l->turn_at_ns > 0)
        return;
    l->turn_at_ns = l->now_ns;
    atomic_store(&l->telemetry.turn_at_ns, l->now_ns); /* see note: doze in watchdog.h */
    wakeup_send_watcher(&l->wakeup);
    turn_poll_note_absence(l);
}

/*
 * Step 2: run the I/O callbacks. libev calls this with all ready watchers, and at the start of
 * ev_run() with none.
 */
static void turn_poll_on_ready(struct ev_loop *ev)
{
    struct loop *l = ev_userdata(ev);

    if (ev_pending_count(ev) == 0)
        return;
    wakeup_done(&l->wakeup);
    l->now_ns = clock_now_ns();
    l->polled = ev_pending_count(ev);
    l->io_events += l->polled;
    TELEMETRY_SET(l->telemetry.doing, "I/O");
    turn_poll_begin(l);
    ev_invoke_pending(ev);
    l->clock_at_ns = clock_now_ns();
    l->io_ns += l->clock_at_ns - l->now_ns;
}

void turn_poll_init(struct loop *l)
{
    ev_set_userdata(l->backend.ev, l);
    ev_set_invoke_pending_cb(l->backend.ev, turn_poll_on_ready);
    ev_io_init(&l->wakeup_io, turn_poll_on_wakeup, l->wakeup.fd, EV_READ);
    ev_io_start(l->backend.ev, &l->wakeup_io);
    ev_timer_init(&l->timer, turn_poll_on_timer, 0., 0.);
    l->timer_at_ns = CLOCK_NEVER;
}

/* The libev timer is never moved to a later time: an idle turn costs less than re-arming. */
static void turn_poll_arm_timer(struct loop *l, int64_t at_ns)
{
    int64_t delay_ns;

    if (at_ns >= l->timer_at_ns)
        return;
    ev_timer_stop(l->backend.ev, &l->timer);
    ev_now_update(l->backend.ev); /* libev adds the delay to its cached clock */
    delay_ns = at_ns - clock_now_ns();
    ev_timer_set(&l->timer, delay_ns > 0 ? (double)delay_ns / (double)NS_PER_S : 0., 0.);
    ev_timer_start(l->backend.ev, &l->timer);
    l->timer_at_ns = at_ns;
}

/* libev stopped watching the wake-up descriptor: register it again before sleeping. */
static void turn_poll_find_wakeup(struct loop *l)
{
    /* libev ignores an unchanged watcher that it just stopped: set it anew. */
    ev_io_set(&l->wakeup_io, l->wakeup.fd, EV_READ);
    ev_io_start(l->backend.ev, &l->wakeup_io);
    wakeup_wait(&l->wakeup, clock_now_ns() + BACKEND_PACE_NS);
    l->backend.fresh = true;
    l->wakeup_lost = false;
}

static void turn_poll_nap(int64_t until_ns)
{
    struct timespec until = {.tv_sec = until_ns / NS_PER_S, .tv_nsec = until_ns % NS_PER_S};

    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

/* Wait briefly for the wake-up descriptor alone (note: trouble in backend.h). */
static void turn_poll_pace(struct loop *l, int64_t until_ns)
{
    int64_t pace_until_ns = clock_add_ns(clock_now_ns(), BACKEND_PACE_NS);

    wakeup_prepare(&l->wakeup, until_ns);
    if (until_ns < pace_until_ns)
        pace_until_ns = until_ns;
    if (!turn_has_work(l) && !turn_stop_requested(l)) /* see note: wake-up */
        wakeup_wait(&l->wakeup, pace_until_ns);
    wakeup_done(&l->wakeup);
    /* A broken descriptor ends the wait at once: sleep without the descriptor. */
    if (!turn_has_work(l) && !turn_stop_requested(l))
        turn_poll_nap(pace_until_ns);
}

/* See note: silence in heard.h. */
static void turn_poll_events(struct loop *l, bool may_block)
{
    int64_t began_at_ns = l->clock_at_ns;

    l->polled = 0;
    backend_poll(&l->backend, may_block);
    heard_poll(&l->heard, began_at_ns, l->polled, l->backend.error);
}

static void turn_poll_sleep(struct loop *l, int64_t until_ns)
{
    turn_poll_arm_timer(l, until_ns);
    wakeup_prepare(&l->wakeup, until_ns);
    if (turn_has_work(l) || turn_stop_requested(l)) { /* see note: wake-up */
        wakeup_done(&l->wakeup);
        turn_poll_events(l, false);
        return;
    }
    TELEMETRY_ADD(l->telemetry.polls_blocking, 1);
    l->sleep_until_ns = until_ns;
    turn_poll_events(l, true);
    wakeup_done(&l->wakeup);
}

static void turn_poll_wait(struct loop *l)
{
    int64_t stop_at_ns = turn_stop_next_at_ns(l);
    int64_t until_ns = timer_heap_next_at_ns(&l->schedule);

    if (stop_at_ns < until_ns)
        until_ns = stop_at_ns;
    if (l->wakeup_lost)
        turn_poll_find_wakeup(l);
    if (l->backend.paced)
        turn_poll_pace(l, until_ns);
    if (turn_has_work(l) || l->backend.fresh)
        turn_poll_events(l, false);
    else
        turn_poll_sleep(l, until_ns);
}

/*
 * Did the poll without events only end because libev ends every poll? Then the loop sleeps again,
 * without a turn, which would end a doze. Polls that matter to backend_judge() are turns.
 */
static bool turn_poll_sleeps_on(struct loop *l)
{
    int64_t now_ns;

    if (l->sleep_until_ns == 0 || l->backend.error != 0 || l->backend.early > 0 ||
        l->backend.in_trouble)
        return false;
    now_ns = clock_now_ns();
    if (now_ns - l->sleep_at_ns < TURN_POLL_MAX_NS || now_ns >= l->sleep_until_ns)
        return false;
    TELEMETRY_ADD(l->telemetry.poll_ns, now_ns - l->sleep_at_ns);
    l->sleep_at_ns = l->clock_at_ns = now_ns;
    l->sleep_until_ns = 0;
    return true;
}

void turn_poll_run(struct loop *l)
{
    l->now_ns = 0;
    l->turn_at_ns = 0;
    l->io_ns = 0;
    l->io_events = 0;
    l->ran = false;
    l->woken = false;
    l->sleep_at_ns = l->clock_at_ns;
    l->sleep_until_ns = 0;
    TELEMETRY_SET(l->telemetry.turn_at_ns, 0);
    do
        turn_poll_wait(l);
    while (l->now_ns == 0 && turn_poll_sleeps_on(l));
    if (l->now_ns == 0) {
        l->now_ns = l->clock_at_ns = clock_now_ns();
        turn_poll_begin(l);
    }
    TELEMETRY_ADD(l->telemetry.poll_ns, l->turn_at_ns - l->sleep_at_ns);
}

void turn_poll_again(struct loop *l)
{
    int error = l->backend.error;

    turn_poll_events(l, false);
    if (l->backend.error == 0)
        l->backend.error = error; /* keep the error of the turn's first poll */
}

void turn_poll_count(struct loop *l)
{
    l->ran |= l->io_events > 0;
    TELEMETRY_ADD(l->telemetry.io_ns, l->io_ns);
    TELEMETRY_ADD(l->telemetry.io_events, l->io_events);
}

static bool turn_poll_is_early(const struct loop *l)
{
    int64_t at_ns = clock_add_ns(l->sleep_at_ns, TURN_POLL_MAX_NS);

    if (l->sleep_until_ns < at_ns)
        at_ns = l->sleep_until_ns;
    return l->turn_at_ns < at_ns - TURN_POLL_SLACK_NS;
}

static enum backend_poll turn_poll_verdict(const struct loop *l)
{
    int error = l->backend.error;

    if (error != 0 && error != EINTR)
        return BACKEND_FAILED;
    if (l->io_events > 0)
        return BACKEND_GOOD;
    if (l->sleep_until_ns == 0 || error == EINTR)
        return BACKEND_NEUTRAL;
    if (!turn_poll_is_early(l) || (l->woken && l->ran))
        return BACKEND_GOOD;
    return l->ran ? BACKEND_NEUTRAL : BACKEND_EARLY;
}

void turn_poll_judge(struct loop *l)
{
    enum backend_poll poll = turn_poll_verdict(l);
    char failure[64];
    const char *cause = l->woken ? "its wake-up descriptor stays readable"
                                 : "epoll_wait returns early without events";

    if (poll == BACKEND_FAILED) {
        snprintf(failure, sizeof(failure), "epoll_wait: %s", strerror(l->backend.error));
        cause = failure;
    }
    if (backend_judge(&l->backend, poll, cause))
        TELEMETRY_ADD(l->telemetry.rebuilds, 1);
}
