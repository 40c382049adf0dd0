/*
 * engine/loop, its epoll instance: a wake-up descriptor that cannot be watched, and what a new
 * instance takes over from the old.
 */
#include <errno.h>
#include <unistd.h>

#include "engine/loop_internal.h"
#include "support/bell.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/observe.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/timers.h"
#include "support/until.h"

#define MS(n) ((n)*NS_PER_MS)

static struct loop *loop;

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_NOTICE);
    loop = loop_runner_create();
}

static void teardown(void)
{
    loop_runner_destroy(loop);
}

static void expect_task_run(void)
{
    struct tasks_counted t;

    tasks_counted_init(&t);
    ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &t.task), 0);
    UNTIL(atomic_load(&t.run) == 1);
}

static void expect_all_well(struct bell *b)
{
    expect_task_run();
    timers_expect_run(loop);
    bell_expect_heard(b);
}

/* ---- descriptors that cannot be watched ---- */

static void rebuild(void *arg)
{
    struct loop *l = arg;

    ck_assert_int_eq(backend_rebuild(&l->backend), 0);
}

/*
 * Let the next ${times} registrations of the loop's wake-up descriptor fail: its first ones, or
 * those after a rebuild.
 */
static void lose_wakeup(unsigned times, bool at_start)
{
    if (!at_start)
        observe_until_asleep(loop);
    fault_plan(FAULT_EPOLL_CTL, 0, times, ENOMEM);
    if (at_start)
        expect_task_run();
    else
        loop_runner_call(loop, rebuild, loop);
}

static const unsigned times_lost[] = {1, 2, 50};

GROUP(watch, setup, teardown);

TEST_EACH(watch, wakeup_descriptor_that_cannot_be_watched_is_retried,
          2 * (int)ARRAY_LEN(times_lost))
{
    unsigned calls = fault_calls(FAULT_EPOLL_CTL), times = times_lost[_i / 2];

    lose_wakeup(times, _i % 2);
    UNTIL(fault_calls(FAULT_EPOLL_CTL) - calls > times);
    for (int i = 0; i < 3; i++) {
        observe_until_asleep(loop); /* libev would let it for a minute */
        expect_task_run();
    }
    ck_assert_uint_le(fault_calls(FAULT_EPOLL_CTL) - calls, times + 2);
}

/* In 300 ms a loop that spins polls 50,000 times. */
TEST_EACH(watch, loop_with_an_unwatched_wakeup_runs_tasks_and_timers_without_spinning, 2)
{
    struct bell bell;
    unsigned polls;

    lose_wakeup(FAULT_ALWAYS, _i);
    for (int i = 0; i < 20; i++)
        expect_task_run();
    timers_expect_run(loop);
    polls = fault_calls(FAULT_EPOLL_WAIT);
    PAUSE_MS(300);
    ck_assert_uint_le(fault_calls(FAULT_EPOLL_WAIT) - polls, 1500);
    fault_plan(FAULT_EPOLL_CTL, 0, 0, 0);
    bell_open(&bell, loop, NULL);
    observe_until_asleep(loop);
    expect_all_well(&bell);
    bell_close(&bell);
}

TEST(watch, many_ready_descriptors_are_served_in_few_turns)
{
    static struct bell bells[500]; /* the library asks for 64 at first */
    struct tasks_block block;
    uint64_t turns;

    for (size_t i = 0; i < ARRAY_LEN(bells); i++)
        bell_open(&bells[i], loop, NULL);
    tasks_block_begin(&block, loop);
    for (size_t i = 0; i < ARRAY_LEN(bells); i++)
        bell_ring(&bells[i]);
    turns = observe_stats(loop).turns;
    tasks_block_end(&block);
    for (size_t i = 0; i < ARRAY_LEN(bells); i++)
        UNTIL(atomic_load(&bells[i].n_heard) == 1);
    ck_assert_uint_le(observe_stats(loop).turns - turns, 12);
    ck_assert_uint_eq(observe_stats(loop).io_events, ARRAY_LEN(bells));
    for (size_t i = 0; i < ARRAY_LEN(bells); i++)
        bell_close(&bells[i]);
}

/* ---- rebuilding ---- */

GROUP(rebuild, setup, teardown);

TEST(rebuild, rebuilt_loop_keeps_watchers_timers_and_ready_events)
{
    struct timers_noted timer, far;
    struct bell bells[10];
    struct tasks_block block;

    for (int i = 0; i < 10; i++)
        bell_open(&bells[i], loop, NULL);
    timers_noted_init(&timer);
    timers_noted_init(&far);
    ck_assert_int_eq(loop_submit_after(loop, &timer.timer, MS(100), 0), 0);
    ck_assert_int_eq(loop_submit_after(loop, &far.timer, 60 * NS_PER_S, 0), 0);
    tasks_block_begin(&block, loop);
    for (int i = 0; i < 5; i++)
        bell_ring(&bells[i]);
    tasks_block_end(&block);
    loop_runner_call(loop, rebuild, loop);
    for (int i = 0; i < 5; i++)
        UNTIL(atomic_load(&bells[i].n_heard) == 1);
    for (int i = 0; i < 10; i++)
        bell_expect_heard(&bells[i]);
    UNTIL(atomic_load(&timer.run) == 1);
    ck_assert_int_ge(timer.began_at_ns[0], timer.planned_at_ns[0]);
    for (int i = 0; i < 10; i++)
        bell_close(&bells[i]);
    loop_runner_stop(loop);
    ck_assert_uint_eq(atomic_load(&far.dropped), 1);
}

static void rebuild_and_lose_wakeup(struct bell *b)
{
    b->heard = NULL; /* once */
    fault_plan(FAULT_EPOLL_CTL, 0, 1, ENOMEM);
    rebuild(b->loop);
}

/*
 * The poll during which it is called has not yet ended, and was not the one to register everything
 * anew.
 */
TEST(rebuild, a_rebuild_in_a_callback_does_not_let_the_next_poll_sleep_unwatched)
{
    struct bell bell;

    bell_open(&bell, loop, rebuild_and_lose_wakeup);
    observe_until_asleep(loop);
    bell_ring(&bell);
    UNTIL(atomic_load(&bell.n_heard) == 1);
    for (int i = 0; i < 3; i++) {
        expect_task_run(); /* libev would let it sleep for a minute */
        observe_until_asleep(loop);
    }
    expect_all_well(&bell);
    bell_close(&bell);
}

/* Sends back what comes. */
static int echo_fd;
static struct ev_io echo_io;

static void echo(struct ev_loop *ev, struct ev_io *w, int revents)
{
    char data[4096];
    ssize_t n = read(w->fd, data, sizeof(data));

    (void)ev;
    (void)revents;
    ck_assert_int_gt(n, 0);
    ck_assert_int_eq(write(w->fd, data, (size_t)n), n);
}

static atomic_uint n_rebuilt;

static void rebuild_again(struct task *t)
{
    (void)t;
    rebuild(loop);
    n_rebuilt++;
}

static struct timer rebuilding;

static void echo_begin(void *arg)
{
    static const struct task_type type = {
        .name = "rebuild", .run = rebuild_again, .drop = rebuild_again};

    (void)arg;
    ev_io_init(&echo_io, echo, echo_fd, EV_READ);
    ev_io_start(loop_ev(loop), &echo_io);
    timer_init(&rebuilding, &type);
    loop_schedule_every(loop, &rebuilding, 0, 100 * NS_PER_US);
}

static void echo_end(void *arg)
{
    (void)arg;
    loop_cancel(loop, &rebuilding);
    ev_io_stop(loop_ev(loop), &echo_io);
    close(echo_fd);
}

TEST(rebuild, rebuilding_under_load_loses_no_byte)
{
    int peer;

    sockets_unix(&echo_fd, &peer);
    loop_runner_call(loop, echo_begin, NULL);
    for (size_t at = 0; at < 1000 * 1024; at += 1024) {
        sockets_say_pattern(peer, at, 1024);
        sockets_hear_pattern(peer, at, 1024);
    }
    UNTIL(atomic_load(&n_rebuilt) > 100);
    loop_runner_call(loop, echo_end, NULL);
    close(peer);
}
