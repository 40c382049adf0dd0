/* net/hangup: resets that are found by polling, where epoll cannot watch the sockets. */
#include <errno.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/loop_internal.h"
#include "net/hangup.h"
#include "support/fault.h"
#include "support/hangups.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

#define CROWD 600 /* more than two runs of the timer take */

GROUP(hangup, hangups_setup, hangups_teardown);

/* 0: it could not be registered; 1: it can no longer be watched. */
TEST_EACH(hangup, without_epoll_an_end_of_file_is_found_by_polling, 2)
{
    struct place *p = hangups_registered_place(0, false);

    if (_i == 0)
        loop_runner_call(hangups.loop, hangups_do_leave, p);
    fault_plan(FAULT_EPOLL_CTL, 0, FAULT_ALWAYS, ENOSPC);
    loop_runner_call(hangups.loop, hangups_do_listen_end, p);
    UNTIL(log_lines_with("cannot be watched") == 1);
    sockets_end(p->theirs);
    UNTIL(atomic_load(&p->events) == 1);
    hangups_reset(p);
    UNTIL(atomic_load(&p->events) == 2);
    EXPECT_LOG_LINES("cannot be watched for a reset", 1);
}

static void do_rebuild(void *arg)
{
    (void)arg;
    ck_assert_int_eq(backend_rebuild(&hangups.loop->backend), 0);
}

TEST(hangup, a_new_epoll_instance_of_the_loop_loses_nothing)
{
    struct place *p = hangups_registered_place(0, false);

    loop_runner_call(hangups.loop, do_rebuild, NULL);
    hangups_reset(p);
    UNTIL(atomic_load(&p->events) == 1);
}

/*
 * 0: sockets cannot be registered. 1: after a rebuild the loop can watch its wake-up descriptor,
 * which comes first, but not the epoll instance.
 */
TEST_EACH(hangup, without_epoll_resets_are_found_by_polling, 2)
{
    struct place *p = hangups_registered_place(0, false), *late;

    if (_i == 0) {
        loop_runner_call(hangups.loop, hangups_do_leave, p);
        fault_plan(FAULT_EPOLL_CTL, 0, FAULT_ALWAYS, ENOSPC);
        loop_runner_call(hangups.loop, hangups_do_listen, p);
    } else {
        fault_plan(FAULT_EPOLL_CTL, 1, FAULT_ALWAYS, ENOSPC);
        loop_runner_call(hangups.loop, do_rebuild, NULL);
    }
    UNTIL(log_lines_with("cannot be watched for a reset") == 1);
    ck_assert_uint_eq(atomic_load(&p->events), 0);
    hangups_reset(p);
    UNTIL(atomic_load(&p->events) == 1);
    late = hangups_paused(1, false);
    hangups_reset(late);
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
    p = hangups_paused(0, false);
    other = hangups_paused(1, false);
    hangups_reset(p);
    UNTIL(atomic_load(&p->events) > 0);
    until_polled(2);
    ck_assert_uint_eq(atomic_load(&p->events), 1);
    ck_assert_uint_eq(atomic_load(&other->events), 0);
}

TEST(hangup, the_loop_sleeps_between_polls)
{
    struct loop_stats first, last;

    fault_plan(FAULT_EPOLL_CTL, 0, FAULT_ALWAYS, ENOSPC);
    hangups_paused(0, false);
    until_polled(2); /* when it settles, and the first poll */
    loop_stats(hangups.loop, &first);
    until_polled(2);
    loop_stats(hangups.loop, &last);
    ck_assert_uint_lt(last.turns - first.turns, HANGUP_PROBE_NS / HANGUP_SETTLE_NS / 2);
}

TEST(hangup, refused_registration_is_retried_later)
{
    struct place *p;

    hangups_registered_place(1, false);
    fault_plan(FAULT_EPOLL_CTL, 0, FAULT_ALWAYS, ENOSPC);
    p = hangups_paused(0, false);
    UNTIL(log_lines_with("No space left on device") == 1);
    fault_plan(FAULT_EPOLL_CTL, 0, 0, 0);
    UNTIL(hangups_registered(p));
    ck_assert_uint_eq(atomic_load(&p->events), 0);
    hangups_reset(p);
    UNTIL(atomic_load(&p->events) == 1);
}

static void do_ask_watched(void *arg)
{
    *(bool *)arg = ev_is_active(&hangups.hangup.io);
}

/* Does libev watch the epoll instance? */
static bool watched(void)
{
    bool answer;

    loop_runner_call(hangups.loop, do_ask_watched, &answer);
    return answer;
}

static void do_ask_idle(void *arg)
{
    *(bool *)arg = hangups.hangup.timer.state == TIMER_IDLE;
}

static bool timer_idle(void)
{
    bool answer;

    loop_runner_call(hangups.loop, do_ask_idle, &answer);
    return answer;
}

TEST(hangup, an_instance_that_could_not_be_watched_is_watched_later)
{
    struct place *p = hangups_registered_place(0, false);

    fault_plan(FAULT_EPOLL_CTL, 1, FAULT_ALWAYS, ENOSPC); /* as above, 1 */
    loop_runner_call(hangups.loop, do_rebuild, NULL);
    UNTIL(log_lines_with("cannot be watched for a reset") == 1);
    UNTIL(!watched());
    fault_plan(FAULT_EPOLL_CTL, 0, 0, 0);
    UNTIL(watched());
    UNTIL(hangups_registered(p));
    UNTIL(timer_idle()); /* no polls any more */
    ck_assert(watched());
    hangups_reset(p);
    UNTIL(atomic_load(&p->events) == 1);
}

TEST(hangup, many_resets_at_once_are_all_found_by_polling)
{
    for (unsigned i = 0; i < WATCHES; i++)
        hangups_paused(i, false);
    for (unsigned i = 0; i < WATCHES; i++)
        UNTIL(hangups_registered(&hangups.places[i]));
    fault_plan(FAULT_EPOLL_CTL, 1, FAULT_ALWAYS, ENOSPC);
    loop_runner_call(hangups.loop, do_rebuild, NULL);
    UNTIL(log_lines_with("cannot be watched for a reset") == 1);
    loop_runner_call(hangups.loop, hangups_do_reset_all, NULL);
    for (unsigned i = 0; i < WATCHES; i++)
        UNTIL(atomic_load(&hangups.places[i].events) == 1);
}

/*
 * A unix peer that shuts both halves down is a hang-up without an error; that it closes its socket
 * with bytes unread is an error. 0: registered; 1: polled.
 */
TEST_EACH(hangup, a_reset_behind_a_hangup_is_reported_too, 2)
{
    struct place *p = &hangups.places[0];

    if (_i == 1)
        fault_plan(FAULT_EPOLL_CTL, 0, FAULT_ALWAYS, ENOSPC);
    sockets_unix(&p->ours, &p->theirs);
    sockets_say(p->ours, "unread");
    loop_runner_call(hangups.loop, hangups_do_listen, p);
    if (_i == 0)
        UNTIL(hangups_registered(p));
    ck_assert_int_eq(shutdown(p->theirs, SHUT_RDWR), 0);
    UNTIL(atomic_load(&p->events) == 1);
    loop_runner_turn(hangups.loop);
    ck_assert_uint_eq(atomic_load(&p->events), 1);
    close(p->theirs);
    p->theirs = -1;
    UNTIL(atomic_load(&p->events) == 2);
    loop_runner_call(hangups.loop, hangups_do_leave, p);
    loop_runner_call(hangups.loop, hangups_do_listen, p); /* another pause */
    UNTIL(atomic_load(&p->events) == 3);
}

TEST(hangup, a_hangup_without_an_error_is_reported_once)
{
    struct place *p = hangups_registered_place(0, true), *late;

    close(p->theirs);
    p->theirs = -1;
    UNTIL(atomic_load(&p->events) == 1);
    fault_plan(FAULT_EPOLL_CTL, 0, FAULT_ALWAYS, ENOSPC);
    late = hangups_paused(1, false);
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
        hangup_listen(&hangups.hangup, &crowd[i], crowd_fds[i]);
}

static void do_leave_crowd(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < CROWD; i++)
        hangup_leave(&hangups.hangup, &crowd[i]);
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

    loop_runner_call(hangups.loop, do_count_crowd, &n);
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
    if (atomic_load(&meter.ends) || loop_submit(hangups.loop, LOOP_TASKS, t) < 0)
        meter_drop(t);
}

static const struct task_type meter_type = {
    .name = "turn meter", .run = meter_run, .drop = meter_drop};

/* 0: sockets are registered; 1: they cannot be, and are polled. */
TEST_EACH(hangup, a_turn_registers_or_polls_a_bounded_number_of_sockets, 2)
{
    unsigned calls;

    sockets_tcp(&hangups.places[0].ours, &hangups.places[0].theirs);
    for (unsigned i = 0; i < CROWD; i++) {
        hangup_watch_init(&crowd[i], hangups_on_hangup);
        /* two sockets: the kernel limits how often nested instances watch one */
        crowd_fds[i] = dup(i % 2 ? hangups.places[0].ours : hangups.places[0].theirs);
        ck_assert_int_ge(crowd_fds[i], 0);
    }
    meter.task.type = &meter_type;
    meter.last = calls = fault_calls(FAULT_EPOLL_CTL);
    ck_assert_int_eq(loop_submit(hangups.loop, LOOP_TASKS, &meter.task), 0);
    if (_i == 1)
        fault_plan(FAULT_EPOLL_CTL, 0, FAULT_ALWAYS, ENOSPC);
    loop_runner_call(hangups.loop, do_listen_crowd, NULL);
    if (_i == 0)
        UNTIL(crowd_registered() == CROWD);
    else
        UNTIL(fault_calls(FAULT_EPOLL_CTL) - calls >= 3 * CROWD);
    atomic_store(&meter.ends, true);
    UNTIL(atomic_load(&meter.ended));
    ck_assert_uint_ge(atomic_load(&meter.most), HANGUP_RUN / 2);
    ck_assert_uint_le(atomic_load(&meter.most), HANGUP_RUN + 16);
    fault_plan(FAULT_EPOLL_CTL, 0, 0, 0);
    loop_runner_call(hangups.loop, do_leave_crowd, NULL);
    for (unsigned i = 0; i < CROWD; i++)
        close(crowd_fds[i]);
}

TEST(hangup, creating_without_descriptors_fails)
{
    struct hangup other;

    fault_plan(FAULT_EPOLL_CREATE1, 0, 1, EMFILE);
    ck_assert_int_eq(hangup_open(&other, hangups.loop), -EMFILE);
}
