/* engine/loop, its end: what the timeout cuts off is dropped, once, and named. */
#include <errno.h>

#include "engine/loop_internal.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/stopping.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

GROUP(stop, stopping_setup, stopping_teardown);

TEST(stop, tasks_without_end_are_ended_by_the_timeout)
{
    int64_t began_at_ns = clock_now_ns();
    unsigned n;

    stopping_start();
    loop_stop(stopping.loop, MS(400), MS(400));
    n = stopping_submit_for(20000);
    loop_runner_join(stopping.loop);
    ck_assert_int_ge(since_ms(began_at_ns), 400);
    ck_assert_int_lt(since_ms(began_at_ns), 15000);
    ck_assert_uint_ge(n, 1);
    ck_assert_uint_lt(n, ARRAY_LEN(stopping.steady)); /* the next one was refused */
    ck_assert_int_eq(loop_submit(stopping.loop, LOOP_TASKS, &stopping.steady[n].task), -ESHUTDOWN);
    ck_assert_uint_eq(
        atomic_load(&stopping.steady[n].run) + atomic_load(&stopping.steady[n].dropped), 0);
}

static atomic_uint endless_ends;

static void endless_run(struct task *t)
{
    if (loop_submit(stopping.loop, LOOP_TASKS, t) < 0)
        atomic_fetch_add(&endless_ends, 1);
}

static void endless_drop(struct task *t)
{
    (void)t;
    atomic_fetch_add(&endless_ends, 1);
}

TEST(stop, task_that_resubmits_itself_is_ended_by_the_timeout)
{
    static const struct task_type type = {
        .name = "endless", .run = endless_run, .drop = endless_drop};
    struct task endless[3] = {{.type = &type}, {.type = &type}, {.type = &type}};

    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(loop_submit(stopping.loop, LOOP_TASKS, &endless[i]), 0);
    ck_assert_int_lt(stopping_take_ms(0, MS(200)), 15000);
    ck_assert_uint_eq(atomic_load(&endless_ends), 3);
    EXPECT_LOG_LINES("loop test: stop timed out", 1);
}

TEST(stop, tasks_cut_off_by_the_timeout_are_dropped_once)
{
    struct tasks_counted tasks[300];
    struct loop_stats stats;
    unsigned run = 0, dropped = 0;

    tasks_block_begin(&stopping.block, stopping.loop);
    for (int i = 0; i < 300; i++) {
        tasks_counted_init(&tasks[i]);
        ck_assert_int_eq(loop_submit(stopping.loop, (enum loop_queue)(i % 3), &tasks[i].task), 0);
    }
    loop_stop(stopping.loop, 0, 0);
    tasks_block_end(&stopping.block);
    loop_runner_join(stopping.loop);
    for (int i = 0; i < 300; i++) {
        ck_assert_uint_eq(atomic_load(&tasks[i].run) + atomic_load(&tasks[i].dropped), 1);
        run += atomic_load(&tasks[i].run);
        dropped += atomic_load(&tasks[i].dropped);
    }
    loop_stats(stopping.loop, &stats);
    ck_assert_uint_gt(dropped, 0);
    ck_assert_uint_eq(stats.tasks_dropped, dropped);
    ck_assert_uint_eq(stats.tasks_run, run + 1);
    ck_assert_uint_eq(stats.tasks_pending, 0);
}

/* Dropped at the very end, reaped then, and adding once more. */
struct last {
    struct task dropped, reaped;
    struct tasks_counted at_stop;
    struct tasks_timer timer;
    bool adds_at_stop, adds_timer;
};

static struct last last;

static void last_run(struct task *t)
{
    (void)t;
    ck_abort_msg("the loop should have ended");
}

static void last_reap(struct task *t)
{
    (void)t;
    if (last.adds_at_stop)
        loop_at_stop(stopping.loop, &last.at_stop.task);
    if (last.adds_timer)
        loop_schedule(stopping.loop, &last.timer.timer, MS(1));
}

static void last_drop(struct task *t)
{
    (void)t;
    loop_reap(stopping.loop, &last.reaped);
}

TEST_EACH(stop, tasks_and_timers_added_by_the_last_drops_and_reaps_are_run_or_dropped, 3)
{
    static const struct task_type dropped_type = {
        .name = "dropped", .run = last_run, .drop = last_drop};
    static const struct task_type reaped_type = {.name = "reaped", .run = last_reap};
    struct budget_conf budget = {.io_ratio = 50, .quantum_ns = 1};

    loop_destroy(stopping.loop);
    stopping.loop = loop_runner_create_with(budget, 64);
    last.adds_at_stop = _i != 1;
    last.adds_timer = _i != 2;
    last.dropped.type = &dropped_type;
    last.reaped.type = &reaped_type;
    tasks_counted_init(&last.at_stop);
    tasks_timer_init(&last.timer, &stopping.trace, 't');
    tasks_block_begin(&stopping.block, stopping.loop);
    ck_assert_int_eq(loop_submit(stopping.loop, LOOP_TASKS, &last.dropped), 0);
    loop_stop(stopping.loop, 0, 0);
    tasks_block_end(&stopping.block);
    loop_runner_join(stopping.loop);
    ck_assert_uint_eq(atomic_load(&last.at_stop.run), last.adds_at_stop);
    ck_assert_str_eq(stopping.trace.text, last.adds_timer ? "!t" : "");
}

TEST(stop, timeout_counts_the_tasks_of_all_queues)
{
    struct budget_conf budget = {.io_ratio = 50, .quantum_ns = 1};
    struct tasks_counted tasks[30];

    loop_destroy(stopping.loop);
    stopping.loop = loop_runner_create_with(budget, 64);
    tasks_block_begin(&stopping.block, stopping.loop);
    for (int i = 0; i < 30; i++) {
        tasks_counted_init(&tasks[i]);
        ck_assert_int_eq(
            loop_submit(stopping.loop, i < 10 ? LOOP_CONTROL : LOOP_TASKS, &tasks[i].task), 0);
    }
    loop_stop(stopping.loop, 0, 0);
    tasks_block_end(&stopping.block);
    loop_runner_join(stopping.loop);
    EXPECT_LOG_LINES(" tasks dropped: 30, the first: counted", 1);
}

TEST(stop, stop_timeout_logs_the_first_task_it_drops)
{
    struct budget_conf budget = {.io_ratio = 50, .quantum_ns = 1};
    struct tasks_counted tasks[37];
    struct tasks_traced first;

    loop_destroy(stopping.loop);
    stopping.loop =
        loop_runner_create_with(budget, 64); /* in which one task is the only one of its turn */
    tasks_traced_init(&first, &stopping.trace, 'f');
    tasks_block_begin(&stopping.block, stopping.loop);
    ck_assert_int_eq(loop_submit(stopping.loop, LOOP_TASKS, &first.task), 0);
    for (int i = 0; i < 37; i++) {
        tasks_counted_init(&tasks[i]);
        ck_assert_int_eq(loop_submit(stopping.loop, LOOP_TASKS, &tasks[i].task), 0);
    }
    loop_stop(stopping.loop, 0, 0);
    tasks_block_end(&stopping.block);
    loop_runner_join(stopping.loop);
    ck_assert_str_eq(stopping.trace.text, "!f");
    EXPECT_LOG_LINES("loop test: stop timed out after ", 1);
    EXPECT_LOG_LINES(" tasks dropped: 38, the first: traced", 1);
}

TEST(stop, stop_that_drops_nothing_is_not_logged)
{
    stopping_start();
    stopping_take_ms(0, 0);
    ck_assert_uint_eq(log_lines_with(""), 0);
}
