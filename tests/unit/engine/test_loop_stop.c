/*
 * engine/loop, its end: the quiet period, the timeout, and what still runs. What is dropped is in
 * test_loop_stop_drops.c, what runs at the stop in test_loop_at_stop.c.
 */
#include <errno.h>
#include <pthread.h>

#include "engine/loop_internal.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/stopping.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

static void *stop_it(void *arg)
{
    loop_stop(arg, 0, 0);
    return NULL;
}

GROUP(stop, stopping_setup, stopping_teardown);

/* With a sanitizer this fails if the stop touches a loop that another thread has freed. */
TEST_EACH(stop, loop_may_be_destroyed_while_its_stop_call_returns, 2)
{
    for (int i = 0; i < 500; i++) {
        struct loop *l = loop_runner_create();
        pthread_t stopper;

        if (_i == 1)
            loop_runner_stats(l);
        ck_assert_int_eq(pthread_create(&stopper, NULL, stop_it, l), 0);
        loop_runner_join(l);
        loop_destroy(l);
        pthread_join(stopper, NULL);
    }
}

TEST(stop, a_loop_without_a_thread_ends_at_once_and_starts_none)
{
    loop_stop(stopping.loop, MS(1000), MS(2000));
    ck_assert_int_eq(loop_state(stopping.loop), LOOP_TERMINATED);
    ck_assert_uint_eq(fault_calls(FAULT_PTHREAD_CREATE), 0);
    loop_runner_join(stopping.loop);
}

TEST(stop, without_a_quiet_period_a_loop_ends_at_once)
{
    stopping_start();
    ck_assert_int_lt(stopping_take_ms(0, MS(5000)), 2000);
}

TEST(stop, the_quiet_period_counts_from_the_last_task)
{
    stopping_start();
    PAUSE_MS(1500);
    ck_assert_int_lt(stopping_take_ms(MS(1450), MS(5000)), 1400);
}

TEST(stop, a_loop_that_just_worked_waits_out_the_quiet_period)
{
    int64_t began_at_ns = clock_now_ns();

    stopping_start();
    ck_assert_int_lt(stopping_take_ms(MS(200), MS(5000)), 4500);
    ck_assert_int_ge(since_ms(began_at_ns), 200);
}

static void expect_all_run(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        ck_assert_uint_eq(atomic_load(&stopping.steady[i].run), 1);
        ck_assert_uint_eq(atomic_load(&stopping.steady[i].dropped), 0);
    }
}

/* The stop comes behind the last step of a turn, so that no wake-up is sent; the turns are ours. */
TEST(stop, stop_just_before_a_poll_does_not_wait_for_the_poll)
{
    int64_t began_at_ns = clock_now_ns();

    loop_of_this_thread = stopping.loop;
    loop_set_state(stopping.loop, LOOP_STARTED);
    ck_assert(turn_run(stopping.loop)); /* the first poll never blocks */
    loop_stop(stopping.loop, 0, 0);
    ck_assert(!turn_run(stopping.loop));
    ck_assert_int_lt(since_ms(began_at_ns), 20000); /* libev would sleep for a minute */
    loop_of_this_thread = NULL;
    loop_set_state(stopping.loop, LOOP_TERMINATED);
}

TEST(stop, a_loop_sleeps_through_its_quiet_period)
{
    struct loop_stats stats;
    uint64_t turns;

    turns = loop_runner_stats(stopping.loop).turns;
    stopping_take_ms(MS(300), 20 * NS_PER_S);
    loop_stats(stopping.loop, &stats);
    ck_assert_uint_lt(stats.turns - turns, 50); /* one that spins turns 100,000 times */
}

TEST(stop, task_in_the_quiet_period_extends_it)
{
    unsigned n;

    stopping_start();
    loop_stop(stopping.loop, MS(400), MS(10000));
    n = stopping_submit_for(700);
    ck_assert_uint_ge(n, 3);
    loop_runner_join(stopping.loop);
    ck_assert_int_ge(since_ms(stopping.last_submitted_at_ns), 400);
    expect_all_run(n);
}

TEST(stop, tasks_queued_before_the_stop_all_run)
{
    struct tasks_counted tasks[300];

    tasks_block_begin(&stopping.block, stopping.loop);
    for (int i = 0; i < 300; i++) {
        tasks_counted_init(&tasks[i]);
        ck_assert_int_eq(loop_submit(stopping.loop, (enum loop_queue)(i % 3), &tasks[i].task), 0);
    }
    loop_stop(stopping.loop, 0, MS(10000));
    ck_assert_int_eq(loop_state(stopping.loop), LOOP_SHUTTING_DOWN);
    tasks_block_end(&stopping.block);
    loop_runner_join(stopping.loop);
    for (int i = 0; i < 300; i++)
        ck_assert_uint_eq(atomic_load(&tasks[i].run), 1);
}

TEST(stop, second_stop_does_not_shorten_the_first)
{
    int64_t began_at_ns = clock_now_ns();

    stopping_start();
    loop_stop(stopping.loop, MS(300), MS(5000));
    loop_stop(stopping.loop, 0, 0);
    loop_runner_join(stopping.loop);
    ck_assert_int_ge(since_ms(began_at_ns), 300); /* the quiet time counts from the last task */
}

TEST(stop, a_loop_that_has_ended_can_be_stopped_again)
{
    stopping_start();
    stopping_take_ms(0, MS(1000));
    loop_stop(stopping.loop, 0, 0);
    ck_assert_int_eq(loop_state(stopping.loop), LOOP_TERMINATED);
}

static void stop_itself(void *arg)
{
    (void)arg;
    loop_stop(stopping.loop, 0, MS(1000));
}

TEST(stop, a_loop_can_stop_itself)
{
    loop_runner_call(stopping.loop, stop_itself, NULL);
    loop_runner_join(stopping.loop);
    ck_assert_int_eq(loop_state(stopping.loop), LOOP_TERMINATED);
}

TEST_EACH(stop, loop_that_has_ended_refuses_and_leaves_the_task_to_the_caller, 2)
{
    struct tasks_counted t;

    if (_i)
        stopping_start();
    tasks_counted_init(&t);
    stopping_take_ms(0, MS(1000));
    for (int queue = LOOP_CONTROL; queue <= LOOP_TAIL; queue++)
        ck_assert_int_eq(loop_submit(stopping.loop, (enum loop_queue)queue, &t.task), -ESHUTDOWN);
    ck_assert_int_eq(loop_submit_lazy(stopping.loop, LOOP_TASKS, &t.task), -ESHUTDOWN);
    ck_assert_uint_eq(atomic_load(&t.run) + atomic_load(&t.dropped), 0);
    UNTIL(process_loops() == 0);
}

static void *watch_states(void *arg)
{
    enum loop_state last = LOOP_NOT_STARTED, now;

    do {
        now = loop_state(stopping.loop);
        if (now < last)
            return arg; /* backwards */
        last = now;
    } while (now < LOOP_TERMINATED);
    return NULL;
}

TEST(stop, states_only_move_forward)
{
    pthread_t watcher;
    void *bad;

    pthread_create(&watcher, NULL, watch_states, &stopping.trace);
    stopping_start();
    stopping_submit_for(50);
    stopping_take_ms(MS(30), MS(1000));
    pthread_join(watcher, &bad);
    ck_assert_ptr_null(bad);
}

TEST(stop, join_of_a_hanging_loop_times_out)
{
    int64_t at_ns;

    tasks_block_begin(&stopping.block, stopping.loop);
    loop_stop(stopping.loop, 0, 0);
    at_ns = clock_now_ns() + MS(50);
    ck_assert_int_eq(loop_join_until(stopping.loop, at_ns), -ETIMEDOUT);
    ck_assert_int_ge(clock_now_ns(), at_ns);
    ck_assert_int_eq(loop_join_until(stopping.loop, at_ns),
                     -ETIMEDOUT); /* an instant that is past */
    ck_assert_int_eq(loop_join_until(stopping.loop, 0), -ETIMEDOUT);
    ck_assert_int_eq(loop_state(stopping.loop), LOOP_SHUTTING_DOWN);
    tasks_block_end(&stopping.block);
    ck_assert_int_eq(loop_join_until(stopping.loop, clock_now_ns() + MS(20000)), 0);
    ck_assert_int_eq(loop_state(stopping.loop), LOOP_TERMINATED);
}

TEST_EACH(stop, join_of_an_ended_loop_returns_at_once, 2)
{
    if (_i)
        stopping_start();
    stopping_take_ms(0, MS(1000));
    ck_assert_int_eq(loop_join_until(stopping.loop, 0), 0);
    ck_assert_int_eq(loop_join_until(stopping.loop, CLOCK_NEVER), 0);
}

static const int64_t no_times[][2] = {{2, 1}, {-1, 0}, {-1, 5}, {0, -1}};

TEST_EACH_ABORTS(stop, a_quiet_period_that_is_negative_or_longer_than_the_timeout_is_a_bug,
                 ARRAY_LEN(no_times))
{
    loop_stop(stopping.loop, no_times[_i][0], no_times[_i][1]);
}
