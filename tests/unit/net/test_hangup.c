/* net/hangup: resets of sockets that are not read, and how many system calls they cost. */
#include <errno.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/loop_internal.h"
#include "net/hangup.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

#define WATCHES 200
#define CROWD   600 /* more than two runs of the timer take */

struct place {
    struct hangup_watch watch;
    atomic_uint events;
    int ours, theirs;
    bool leave_others; /* in its event */
    bool was_hung_up;  /* as read on the loop */
};

static struct loop *loop;
static struct hangup hangup;
static struct place places[WATCHES];
static unsigned before;

static void do_leave_all(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < WATCHES; i++)
        hangup_leave(&hangup, &places[i].watch);
}

static void on_hangup(struct hangup_watch *w)
{
    struct place *p = CONTAINER_OF(w, struct place, watch);

    atomic_fetch_add(&p->events, 1);
    if (p->leave_others)
        do_leave_all(NULL);
}

static void do_listen(void *arg)
{
    struct place *p = arg;

    hangup_listen(&hangup, &p->watch, p->ours);
}

static void do_leave(void *arg)
{
    struct place *p = arg;

    hangup_leave(&hangup, &p->watch);
}

struct question {
    const struct place *place;
    bool answer;
};

static void do_ask(void *arg)
{
    struct question *q = arg;

    q->answer = q->place->watch.registered;
}

static bool registered(const struct place *p)
{
    struct question q = {.place = p};

    loop_runner_call(loop, do_ask, &q);
    return q.answer;
}

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
    before = process_descriptors();
    loop = loop_runner_create();
    ck_assert_int_eq(hangup_open(&hangup, loop), 0);
    for (unsigned i = 0; i < WATCHES; i++) {
        places[i] = (struct place){.ours = -1, .theirs = -1};
        hangup_watch_init(&places[i].watch, on_hangup);
    }
}

static void teardown(void)
{
    loop_runner_call(loop, do_leave_all, NULL);
    fault_plan(FAULT_EPOLL_CTL, 0, 0, 0);
    loop_runner_stop(loop);
    hangup_close(&hangup);
    loop_destroy(loop);
    for (unsigned i = 0; i < WATCHES; i++) {
        if (places[i].ours >= 0)
            close(places[i].ours);
        if (places[i].theirs >= 0)
            close(places[i].theirs);
    }
    ck_assert_uint_eq(process_descriptors(), before);
}

/* A socket that is paused, with a TCP peer, or a unix one. */
static struct place *paused(unsigned i, bool unix_peer)
{
    struct place *p = &places[i];

    if (unix_peer)
        sockets_unix(&p->ours, &p->theirs);
    else
        sockets_tcp(&p->ours, &p->theirs);
    loop_runner_call(loop, do_listen, p);
    return p;
}

static struct place *registered_place(unsigned i, bool unix_peer)
{
    struct place *p = paused(i, unix_peer);

    UNTIL(registered(p));
    return p;
}

static void reset(struct place *p)
{
    sockets_reset(p->theirs);
    p->theirs = -1;
}

GROUP(hangup, setup, teardown);

/* 0: before it is registered; 1: after that. */
TEST_EACH(hangup, a_reset_is_reported_once, 2)
{
    struct place *p = _i == 0 ? paused(0, false) : registered_place(0, false);

    reset(p);
    UNTIL(atomic_load(&p->events) == 1);
    loop_runner_turn(loop);
    PAUSE_MS(3 * HANGUP_SETTLE_NS / NS_PER_MS);
    ck_assert_uint_eq(atomic_load(&p->events), 1);
}

TEST_EACH(hangup, bytes_and_an_end_of_file_are_not_reported, 2)
{
    struct place *p = registered_place(0, _i), *last = registered_place(1, _i);

    sockets_say(p->theirs, "hello");
    sockets_end(p->theirs);
    reset(last);
    UNTIL(atomic_load(&last->events) == 1);
    ck_assert_uint_eq(atomic_load(&p->events), 0);
}

static void do_listen_end(void *arg)
{
    struct place *p = arg;

    hangup_listen(&hangup, &p->watch, p->ours);
    hangup_listen_end(&hangup, &p->watch);
}

static void do_read_hung_up(void *arg)
{
    struct place *p = arg;

    p->was_hung_up = p->watch.hung_up;
}

static bool is_hung_up(struct place *p)
{
    loop_runner_call(loop, do_read_hung_up, p);
    return p->was_hung_up;
}

/* 0: asked for before the socket is registered; 1: later; 2: when the peer has ended already. */
TEST_EACH(hangup, end_of_file_is_reported_once_on_request_and_a_reset_after_it, 3)
{
    struct place *p = _i == 0 ? paused(0, false) : registered_place(0, false);

    if (_i == 2)
        sockets_end(p->theirs);
    loop_runner_call(loop, do_listen_end, p);
    if (_i < 2)
        sockets_end(p->theirs);
    UNTIL(atomic_load(&p->events) == 1);
    ck_assert(!is_hung_up(p));
    PAUSE_MS(3 * HANGUP_SETTLE_NS / NS_PER_MS);
    ck_assert_uint_eq(atomic_load(&p->events), 1);
    reset(p);
    UNTIL(atomic_load(&p->events) == 2);
    ck_assert(is_hung_up(p));
}

TEST(hangup, an_end_of_file_is_not_reported_in_the_next_pause)
{
    struct place *p = registered_place(0, false), *last = registered_place(1, false);

    loop_runner_call(loop, do_listen_end, p);
    loop_runner_call(loop, do_leave, p);
    sockets_end(p->theirs);
    loop_runner_call(loop, do_listen, p);
    UNTIL(registered(p));
    reset(last);
    UNTIL(atomic_load(&last->events) == 1);
    ck_assert_uint_eq(atomic_load(&p->events), 0);
}

/* 0: it could not be registered; 1: it can no longer be watched. */
TEST_EACH(hangup, without_epoll_an_end_of_file_is_found_by_polling, 2)
{
    struct place *p = registered_place(0, false);

    if (_i == 0)
        loop_runner_call(loop, do_leave, p);
    fault_plan(FAULT_EPOLL_CTL, 0, FAULT_ALWAYS, ENOSPC);
    loop_runner_call(loop, do_listen_end, p);
    UNTIL(log_lines_with("cannot be watched") == 1);
    sockets_end(p->theirs);
    UNTIL(atomic_load(&p->events) == 1);
    reset(p);
    UNTIL(atomic_load(&p->events) == 2);
    EXPECT_LOG_LINES("cannot be watched for a reset", 1);
}

TEST(hangup, a_unix_peer_that_closes_its_socket_is_reported)
{
    struct place *p = registered_place(0, true);

    close(p->theirs);
    p->theirs = -1;
    UNTIL(atomic_load(&p->events) == 1);
}

TEST(hangup, a_short_pause_costs_no_system_call)
{
    unsigned calls;

    sockets_tcp(&places[0].ours, &places[0].theirs);
    registered_place(1, false); /* after it the loop registers nothing of its own */
    loop_runner_turn(loop);
    calls = fault_calls(FAULT_EPOLL_CTL);
    for (unsigned i = 0; i < 1000; i++) {
        int64_t began_at_ns = clock_now_ns();

        loop_runner_call(loop, do_listen, &places[0]);
        loop_runner_call(loop, do_leave, &places[0]);
        if (clock_now_ns() - began_at_ns >= HANGUP_SETTLE_NS)
            calls = fault_calls(FAULT_EPOLL_CTL); /* the machine was busy: that was no short one */
        ck_assert_uint_eq(fault_calls(FAULT_EPOLL_CTL), calls);
    }
}

TEST(hangup, socket_that_left_its_pause_is_not_reported)
{
    struct place *p = registered_place(0, false), *last = registered_place(1, false);

    loop_runner_call(loop, do_leave, p);
    reset(p);
    reset(last);
    UNTIL(atomic_load(&last->events) == 1);
    ck_assert_uint_eq(atomic_load(&p->events), 0);
    loop_runner_call(loop, do_listen, p); /* paused again */
    UNTIL(atomic_load(&p->events) == 1);
}

static void do_reset_all(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < WATCHES; i++)
        reset(&places[i]);
}

TEST(hangup, many_resets_at_once_are_all_reported)
{
    for (unsigned i = 0; i < WATCHES; i++)
        paused(i, false);
    for (unsigned i = 0; i < WATCHES; i++)
        UNTIL(registered(&places[i]));
    loop_runner_call(loop, do_reset_all, NULL);
    for (unsigned i = 0; i < WATCHES; i++)
        UNTIL(atomic_load(&places[i].events) == 1);
}

TEST(hangup, callback_may_end_the_pauses_of_other_sockets)
{
    unsigned events = 0;

    for (unsigned i = 0; i < WATCHES; i++)
        paused(i, false)->leave_others = true;
    for (unsigned i = 0; i < WATCHES; i++)
        UNTIL(registered(&places[i]));
    loop_runner_call(loop, do_reset_all, NULL);
    UNTIL(!registered(&places[WATCHES - 1]));
    loop_runner_turn(loop);
    for (unsigned i = 0; i < WATCHES; i++)
        events += atomic_load(&places[i].events);
    ck_assert_uint_eq(events, 1);
}

static void do_rebuild(void *arg)
{
    (void)arg;
    ck_assert_int_eq(backend_rebuild(&loop->backend), 0);
}

TEST(hangup, a_new_epoll_instance_of_the_loop_loses_nothing)
{
    struct place *p = registered_place(0, false);

    loop_runner_call(loop, do_rebuild, NULL);
    reset(p);
    UNTIL(atomic_load(&p->events) == 1);
}

/*
 * 0: sockets cannot be registered. 1: after a rebuild the loop can watch its wake-up descriptor,
 * which comes first, but not the epoll instance.
 */
TEST_EACH(hangup, without_epoll_resets_are_found_by_polling, 2)
{
    struct place *p = registered_place(0, false), *late;

    if (_i == 0) {
        loop_runner_call(loop, do_leave, p);
        fault_plan(FAULT_EPOLL_CTL, 0, FAULT_ALWAYS, ENOSPC);
        loop_runner_call(loop, do_listen, p);
    } else {
        fault_plan(FAULT_EPOLL_CTL, 1, FAULT_ALWAYS, ENOSPC);
        loop_runner_call(loop, do_rebuild, NULL);
    }
    UNTIL(log_lines_with("cannot be watched for a reset") == 1);
    ck_assert_uint_eq(atomic_load(&p->events), 0);
    reset(p);
    UNTIL(atomic_load(&p->events) == 1);
    late = paused(1, false);
    reset(late);
    UNTIL(atomic_load(&late->events) == 1);
    EXPECT_LOG_LINES("cannot be watched for a reset", 1);
}

/* Each poll tries to register the sockets that have nothing to tell. */
static void until_polled(unsigned times)
{
    unsigned calls = fault_calls(FAULT_EPOLL_CTL);

    UNTIL(fault_calls(FAULT_EPOLL_CTL) >= calls + times);
}

TEST(hangup, polling_reports_a_reset_once)
{
    struct place *p, *other;

    fault_plan(FAULT_EPOLL_CTL, 0, FAULT_ALWAYS, ENOSPC);
    p = paused(0, false);
    other = paused(1, false);
    reset(p);
    UNTIL(atomic_load(&p->events) > 0);
    until_polled(2);
    ck_assert_uint_eq(atomic_load(&p->events), 1);
    ck_assert_uint_eq(atomic_load(&other->events), 0);
}

TEST(hangup, the_loop_sleeps_between_polls)
{
    struct loop_stats first, last;

    fault_plan(FAULT_EPOLL_CTL, 0, FAULT_ALWAYS, ENOSPC);
    paused(0, false);
    until_polled(2); /* when it settles, and the first poll */
    loop_stats(loop, &first);
    until_polled(2);
    loop_stats(loop, &last);
    ck_assert_uint_lt(last.turns - first.turns, HANGUP_PROBE_NS / HANGUP_SETTLE_NS / 2);
}

TEST(hangup, refused_registration_is_retried_later)
{
    struct place *p;

    registered_place(1, false);
    fault_plan(FAULT_EPOLL_CTL, 0, FAULT_ALWAYS, ENOSPC);
    p = paused(0, false);
    UNTIL(log_lines_with("No space left on device") == 1);
    fault_plan(FAULT_EPOLL_CTL, 0, 0, 0);
    UNTIL(registered(p));
    ck_assert_uint_eq(atomic_load(&p->events), 0);
    reset(p);
    UNTIL(atomic_load(&p->events) == 1);
}

static void do_ask_watched(void *arg)
{
    *(bool *)arg = ev_is_active(&hangup.io);
}

/* Does libev watch the epoll instance? */
static bool watched(void)
{
    bool answer;

    loop_runner_call(loop, do_ask_watched, &answer);
    return answer;
}

static void do_ask_idle(void *arg)
{
    *(bool *)arg = hangup.timer.state == TIMER_IDLE;
}

static bool timer_idle(void)
{
    bool answer;

    loop_runner_call(loop, do_ask_idle, &answer);
    return answer;
}

TEST(hangup, an_instance_that_could_not_be_watched_is_watched_later)
{
    struct place *p = registered_place(0, false);

    fault_plan(FAULT_EPOLL_CTL, 1, FAULT_ALWAYS, ENOSPC); /* as above, 1 */
    loop_runner_call(loop, do_rebuild, NULL);
    UNTIL(log_lines_with("cannot be watched for a reset") == 1);
    UNTIL(!watched());
    fault_plan(FAULT_EPOLL_CTL, 0, 0, 0);
    UNTIL(watched());
    UNTIL(registered(p));
    UNTIL(timer_idle()); /* no polls any more */
    ck_assert(watched());
    reset(p);
    UNTIL(atomic_load(&p->events) == 1);
}

TEST(hangup, many_resets_at_once_are_all_found_by_polling)
{
    for (unsigned i = 0; i < WATCHES; i++)
        paused(i, false);
    for (unsigned i = 0; i < WATCHES; i++)
        UNTIL(registered(&places[i]));
    fault_plan(FAULT_EPOLL_CTL, 1, FAULT_ALWAYS, ENOSPC);
    loop_runner_call(loop, do_rebuild, NULL);
    UNTIL(log_lines_with("cannot be watched for a reset") == 1);
    loop_runner_call(loop, do_reset_all, NULL);
    for (unsigned i = 0; i < WATCHES; i++)
        UNTIL(atomic_load(&places[i].events) == 1);
}

/*
 * A unix peer that shuts both halves down is a hang-up without an error; that it closes its socket
 * with bytes unread is an error. 0: registered; 1: polled.
 */
TEST_EACH(hangup, a_reset_behind_a_hangup_is_reported_too, 2)
{
    struct place *p = &places[0];

    if (_i == 1)
        fault_plan(FAULT_EPOLL_CTL, 0, FAULT_ALWAYS, ENOSPC);
    sockets_unix(&p->ours, &p->theirs);
    sockets_say(p->ours, "unread");
    loop_runner_call(loop, do_listen, p);
    if (_i == 0)
        UNTIL(registered(p));
    ck_assert_int_eq(shutdown(p->theirs, SHUT_RDWR), 0);
    UNTIL(atomic_load(&p->events) == 1);
    loop_runner_turn(loop);
    ck_assert_uint_eq(atomic_load(&p->events), 1);
    close(p->theirs);
    p->theirs = -1;
    UNTIL(atomic_load(&p->events) == 2);
    loop_runner_call(loop, do_leave, p);
    loop_runner_call(loop, do_listen, p); /* another pause */
    UNTIL(atomic_load(&p->events) == 3);
}

TEST(hangup, a_hangup_without_an_error_is_reported_once)
{
    struct place *p = registered_place(0, true), *late;

    close(p->theirs);
    p->theirs = -1;
    UNTIL(atomic_load(&p->events) == 1);
    fault_plan(FAULT_EPOLL_CTL, 0, FAULT_ALWAYS, ENOSPC);
    late = paused(1, false);
    until_polled(3);
    ck_assert_uint_eq(atomic_load(&p->events), 1);
    ck_assert_uint_eq(atomic_load(&late->events), 0);
}

/* ---- many at once ---- */

static struct hangup_watch crowd[CROWD];
static int crowd_fds[CROWD];

static void do_listen_crowd(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < CROWD; i++)
        hangup_listen(&hangup, &crowd[i], crowd_fds[i]);
}

static void do_leave_crowd(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < CROWD; i++)
        hangup_leave(&hangup, &crowd[i]);
}

static void do_count_crowd(void *arg)
{
    unsigned *n = arg;

    *n = 0;
    for (unsigned i = 0; i < CROWD; i++)
        *n += crowd[i].registered;
}

static unsigned crowd_registered(void)
{
    unsigned n;

    loop_runner_call(loop, do_count_crowd, &n);
    return n;
}

/* Runs once a turn and notes how many calls of epoll_ctl() came between two runs. */
static struct turn_meter {
    struct task task;
    unsigned last;
    atomic_uint most;
    atomic_bool ends, ended;
} meter;

static void meter_drop(struct task *t)
{
    (void)t;
    atomic_store(&meter.ended, true);
}

static void meter_run(struct task *t)
{
    unsigned now = fault_calls(FAULT_EPOLL_CTL);

    if (now - meter.last > atomic_load(&meter.most))
        atomic_store(&meter.most, now - meter.last);
    meter.last = now;
    if (atomic_load(&meter.ends) || loop_submit(loop, LOOP_TASKS, t) < 0)
        meter_drop(t);
}

static const struct task_type meter_type = {
    .name = "turn meter", .run = meter_run, .drop = meter_drop};

/* 0: sockets are registered; 1: they cannot be, and are polled. */
TEST_EACH(hangup, a_turn_registers_or_polls_a_bounded_number_of_sockets, 2)
{
    unsigned calls;

    sockets_tcp(&places[0].ours, &places[0].theirs);
    for (unsigned i = 0; i < CROWD; i++) {
        hangup_watch_init(&crowd[i], on_hangup);
        /* two sockets: the kernel limits how often nested instances watch one */
        crowd_fds[i] = dup(i % 2 ? places[0].ours : places[0].theirs);
        ck_assert_int_ge(crowd_fds[i], 0);
    }
    meter.task.type = &meter_type;
    meter.last = calls = fault_calls(FAULT_EPOLL_CTL);
    ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &meter.task), 0);
    if (_i == 1)
        fault_plan(FAULT_EPOLL_CTL, 0, FAULT_ALWAYS, ENOSPC);
    loop_runner_call(loop, do_listen_crowd, NULL);
    if (_i == 0)
        UNTIL(crowd_registered() == CROWD);
    else
        UNTIL(fault_calls(FAULT_EPOLL_CTL) - calls >= 3 * CROWD);
    atomic_store(&meter.ends, true);
    UNTIL(atomic_load(&meter.ended));
    ck_assert_uint_ge(atomic_load(&meter.most), HANGUP_RUN / 2);
    ck_assert_uint_le(atomic_load(&meter.most), HANGUP_RUN + 16);
    fault_plan(FAULT_EPOLL_CTL, 0, 0, 0);
    loop_runner_call(loop, do_leave_crowd, NULL);
    for (unsigned i = 0; i < CROWD; i++)
        close(crowd_fds[i]);
}

TEST(hangup, creating_without_descriptors_fails)
{
    struct hangup other;

    fault_plan(FAULT_EPOLL_CREATE1, 0, 1, EMFILE);
    ck_assert_int_eq(hangup_open(&other, loop), -EMFILE);
}
