/*
 * engine/loop, its end: the quiet period, the timeout, what still runs, and that nothing is lost.
 * What runs at the stop is in test_loop_at_stop.c.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include "engine/loop_internal.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

#define MS(n) ((n)*NS_PER_MS)

static struct loop *loop;
static struct tasks_block block;
static struct tasks_trace trace;

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_WARNING);
    loop = loop_runner_create();
    trace = (struct tasks_trace){.len = 0};
}

static void teardown(void)
{
    loop_destroy(loop);
}

/* Stop and wait; how long it took. */
static int64_t stop_ms(int64_t quiet_ns, int64_t timeout_ns)
{
    int64_t began_at_ns = clock_now_ns();

    loop_stop(loop, quiet_ns, timeout_ns);
    loop_runner_join(loop);
    ck_assert_int_eq(loop_state(loop), LOOP_TERMINATED);
    return since_ms(began_at_ns);
}

static void start(void)
{
    loop_runner_stats(loop);
}

static void *stop_it(void *arg)
{
    loop_stop(arg, 0, 0);
    return NULL;
}

GROUP(stop, setup, teardown);

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
    loop_stop(loop, MS(1000), MS(2000));
    ck_assert_int_eq(loop_state(loop), LOOP_TERMINATED);
    ck_assert_uint_eq(fault_calls(FAULT_PTHREAD_CREATE), 0);
    loop_runner_join(loop);
}

TEST(stop, without_a_quiet_period_a_loop_ends_at_once)
{
    start();
    ck_assert_int_lt(stop_ms(0, MS(5000)), 2000);
}

TEST(stop, the_quiet_period_counts_from_the_last_task)
{
    start();
    PAUSE_MS(1500);
    ck_assert_int_lt(stop_ms(MS(1450), MS(5000)), 1400);
}

TEST(stop, a_loop_that_just_worked_waits_out_the_quiet_period)
{
    int64_t began_at_ns = clock_now_ns();

    start();
    ck_assert_int_lt(stop_ms(MS(200), MS(5000)), 4500);
    ck_assert_int_ge(since_ms(began_at_ns), 200);
}

/* Submit a task each 20 ms until ${ms} have passed or one is refused; how many were accepted. */
static struct tasks_counted steady[200];
static int64_t last_submitted_at_ns; /* or a little earlier */

static unsigned submit_for(int64_t ms)
{
    int64_t began_at_ns = clock_now_ns();
    unsigned n = 0;

    while (since_ms(began_at_ns) < ms && n < ARRAY_LEN(steady)) {
        int64_t now_ns = clock_now_ns();

        tasks_counted_init(&steady[n]);
        if (loop_submit(loop, LOOP_TASKS, &steady[n].task) < 0)
            break; /* the loop has ended: we were not run for the quiet period */
        last_submitted_at_ns = now_ns;
        n++;
        PAUSE_MS(20);
    }
    return n;
}

static void expect_all_run(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        ck_assert_uint_eq(atomic_load(&steady[i].run), 1);
        ck_assert_uint_eq(atomic_load(&steady[i].dropped), 0);
    }
}

/* The stop comes behind the last step of a turn, so that no wake-up is sent; the turns are ours. */
TEST(stop, stop_just_before_a_poll_does_not_wait_for_the_poll)
{
    int64_t began_at_ns = clock_now_ns();

    loop_of_this_thread = loop;
    loop_set_state(loop, LOOP_STARTED);
    ck_assert(turn_run(loop)); /* the first poll never blocks */
    loop_stop(loop, 0, 0);
    ck_assert(!turn_run(loop));
    ck_assert_int_lt(since_ms(began_at_ns), 20000); /* libev would sleep for a minute */
    loop_of_this_thread = NULL;
    loop_set_state(loop, LOOP_TERMINATED);
}

TEST(stop, a_loop_sleeps_through_its_quiet_period)
{
    struct loop_stats stats;
    uint64_t turns;

    turns = loop_runner_stats(loop).turns;
    stop_ms(MS(300), 20 * NS_PER_S);
    loop_stats(loop, &stats);
    ck_assert_uint_lt(stats.turns - turns, 50); /* one that spins turns 100,000 times */
}

TEST(stop, task_in_the_quiet_period_extends_it)
{
    unsigned n;

    start();
    loop_stop(loop, MS(400), MS(10000));
    n = submit_for(700);
    ck_assert_uint_ge(n, 3);
    loop_runner_join(loop);
    ck_assert_int_ge(since_ms(last_submitted_at_ns), 400);
    expect_all_run(n);
}

TEST(stop, tasks_without_end_are_ended_by_the_timeout)
{
    int64_t began_at_ns = clock_now_ns();
    unsigned n;

    start();
    loop_stop(loop, MS(400), MS(400));
    n = submit_for(20000);
    loop_runner_join(loop);
    ck_assert_int_ge(since_ms(began_at_ns), 400);
    ck_assert_int_lt(since_ms(began_at_ns), 15000);
    ck_assert_uint_ge(n, 1);
    ck_assert_uint_lt(n, ARRAY_LEN(steady)); /* the next one was refused */
    ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &steady[n].task), -ESHUTDOWN);
    ck_assert_uint_eq(atomic_load(&steady[n].run) + atomic_load(&steady[n].dropped), 0);
}

static atomic_uint endless_ends;

static void endless_run(struct task *t)
{
    if (loop_submit(loop, LOOP_TASKS, t) < 0)
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
        ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &endless[i]), 0);
    ck_assert_int_lt(stop_ms(0, MS(200)), 15000);
    ck_assert_uint_eq(atomic_load(&endless_ends), 3);
    EXPECT_LOG_LINES("loop test: stop timed out", 1);
}

TEST(stop, tasks_queued_before_the_stop_all_run)
{
    struct tasks_counted tasks[300];

    tasks_block_begin(&block, loop);
    for (int i = 0; i < 300; i++) {
        tasks_counted_init(&tasks[i]);
        ck_assert_int_eq(loop_submit(loop, (enum loop_queue)(i % 3), &tasks[i].task), 0);
    }
    loop_stop(loop, 0, MS(10000));
    ck_assert_int_eq(loop_state(loop), LOOP_SHUTTING_DOWN);
    tasks_block_end(&block);
    loop_runner_join(loop);
    for (int i = 0; i < 300; i++)
        ck_assert_uint_eq(atomic_load(&tasks[i].run), 1);
}

TEST(stop, tasks_cut_off_by_the_timeout_are_dropped_once)
{
    struct tasks_counted tasks[300];
    struct loop_stats stats;
    unsigned run = 0, dropped = 0;

    tasks_block_begin(&block, loop);
    for (int i = 0; i < 300; i++) {
        tasks_counted_init(&tasks[i]);
        ck_assert_int_eq(loop_submit(loop, (enum loop_queue)(i % 3), &tasks[i].task), 0);
    }
    loop_stop(loop, 0, 0);
    tasks_block_end(&block);
    loop_runner_join(loop);
    for (int i = 0; i < 300; i++) {
        ck_assert_uint_eq(atomic_load(&tasks[i].run) + atomic_load(&tasks[i].dropped), 1);
        run += atomic_load(&tasks[i].run);
        dropped += atomic_load(&tasks[i].dropped);
    }
    loop_stats(loop, &stats);
    ck_assert_uint_gt(dropped, 0);
    ck_assert_uint_eq(stats.tasks_dropped, dropped);
    ck_assert_uint_eq(stats.tasks_run, run + 1);
    ck_assert_uint_eq(stats.tasks_pending, 0);
}

TEST(stop, second_stop_does_not_shorten_the_first)
{
    int64_t began_at_ns = clock_now_ns();

    start();
    loop_stop(loop, MS(300), MS(5000));
    loop_stop(loop, 0, 0);
    loop_runner_join(loop);
    ck_assert_int_ge(since_ms(began_at_ns), 300); /* the quiet time counts from the last task */
}

TEST(stop, a_loop_that_has_ended_can_be_stopped_again)
{
    start();
    stop_ms(0, MS(1000));
    loop_stop(loop, 0, 0);
    ck_assert_int_eq(loop_state(loop), LOOP_TERMINATED);
}

static void stop_itself(void *arg)
{
    (void)arg;
    loop_stop(loop, 0, MS(1000));
}

TEST(stop, a_loop_can_stop_itself)
{
    loop_runner_call(loop, stop_itself, NULL);
    loop_runner_join(loop);
    ck_assert_int_eq(loop_state(loop), LOOP_TERMINATED);
}

TEST_EACH(stop, loop_that_has_ended_refuses_and_leaves_the_task_to_the_caller, 2)
{
    struct tasks_counted t;

    if (_i)
        start();
    tasks_counted_init(&t);
    stop_ms(0, MS(1000));
    for (int queue = LOOP_CONTROL; queue <= LOOP_TAIL; queue++)
        ck_assert_int_eq(loop_submit(loop, (enum loop_queue)queue, &t.task), -ESHUTDOWN);
    ck_assert_int_eq(loop_submit_lazy(loop, LOOP_TASKS, &t.task), -ESHUTDOWN);
    ck_assert_uint_eq(atomic_load(&t.run) + atomic_load(&t.dropped), 0);
    UNTIL(process_loops() == 0);
}

static void *watch_states(void *arg)
{
    enum loop_state last = LOOP_NOT_STARTED, now;

    do {
        now = loop_state(loop);
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

    pthread_create(&watcher, NULL, watch_states, &trace);
    start();
    submit_for(50);
    stop_ms(MS(30), MS(1000));
    pthread_join(watcher, &bad);
    ck_assert_ptr_null(bad);
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
        loop_at_stop(loop, &last.at_stop.task);
    if (last.adds_timer)
        loop_schedule(loop, &last.timer.timer, MS(1));
}

static void last_drop(struct task *t)
{
    (void)t;
    loop_reap(loop, &last.reaped);
}

TEST_EACH(stop, tasks_and_timers_added_by_the_last_drops_and_reaps_are_run_or_dropped, 3)
{
    static const struct task_type dropped_type = {
        .name = "dropped", .run = last_run, .drop = last_drop};
    static const struct task_type reaped_type = {.name = "reaped", .run = last_reap};
    struct budget_conf budget = {.io_ratio = 50, .quantum_ns = 1};

    loop_destroy(loop);
    loop = loop_runner_create_with(budget, 64);
    last.adds_at_stop = _i != 1;
    last.adds_timer = _i != 2;
    last.dropped.type = &dropped_type;
    last.reaped.type = &reaped_type;
    tasks_counted_init(&last.at_stop);
    tasks_timer_init(&last.timer, &trace, 't');
    tasks_block_begin(&block, loop);
    ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &last.dropped), 0);
    loop_stop(loop, 0, 0);
    tasks_block_end(&block);
    loop_runner_join(loop);
    ck_assert_uint_eq(atomic_load(&last.at_stop.run), last.adds_at_stop);
    ck_assert_str_eq(trace.text, last.adds_timer ? "!t" : "");
}

TEST(stop, timeout_counts_the_tasks_of_all_queues)
{
    struct budget_conf budget = {.io_ratio = 50, .quantum_ns = 1};
    struct tasks_counted tasks[30];

    loop_destroy(loop);
    loop = loop_runner_create_with(budget, 64);
    tasks_block_begin(&block, loop);
    for (int i = 0; i < 30; i++) {
        tasks_counted_init(&tasks[i]);
        ck_assert_int_eq(loop_submit(loop, i < 10 ? LOOP_CONTROL : LOOP_TASKS, &tasks[i].task), 0);
    }
    loop_stop(loop, 0, 0);
    tasks_block_end(&block);
    loop_runner_join(loop);
    EXPECT_LOG_LINES(" tasks dropped: 30, the first: counted", 1);
}

TEST(stop, join_of_a_hanging_loop_times_out)
{
    int64_t at_ns;

    tasks_block_begin(&block, loop);
    loop_stop(loop, 0, 0);
    at_ns = clock_now_ns() + MS(50);
    ck_assert_int_eq(loop_join_until(loop, at_ns), -ETIMEDOUT);
    ck_assert_int_ge(clock_now_ns(), at_ns);
    ck_assert_int_eq(loop_join_until(loop, at_ns), -ETIMEDOUT); /* an instant that is past */
    ck_assert_int_eq(loop_join_until(loop, 0), -ETIMEDOUT);
    ck_assert_int_eq(loop_state(loop), LOOP_SHUTTING_DOWN);
    tasks_block_end(&block);
    ck_assert_int_eq(loop_join_until(loop, clock_now_ns() + MS(20000)), 0);
    ck_assert_int_eq(loop_state(loop), LOOP_TERMINATED);
}

TEST_EACH(stop, join_of_an_ended_loop_returns_at_once, 2)
{
    if (_i)
        start();
    stop_ms(0, MS(1000));
    ck_assert_int_eq(loop_join_until(loop, 0), 0);
    ck_assert_int_eq(loop_join_until(loop, CLOCK_NEVER), 0);
}

TEST(stop, stop_timeout_logs_the_first_task_it_drops)
{
    struct budget_conf budget = {.io_ratio = 50, .quantum_ns = 1};
    struct tasks_counted tasks[37];
    struct tasks_traced first;

    loop_destroy(loop);
    loop = loop_runner_create_with(budget, 64); /* in which one task is the only one of its turn */
    tasks_traced_init(&first, &trace, 'f');
    tasks_block_begin(&block, loop);
    ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &first.task), 0);
    for (int i = 0; i < 37; i++) {
        tasks_counted_init(&tasks[i]);
        ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &tasks[i].task), 0);
    }
    loop_stop(loop, 0, 0);
    tasks_block_end(&block);
    loop_runner_join(loop);
    ck_assert_str_eq(trace.text, "!f");
    EXPECT_LOG_LINES("loop test: stop timed out after ", 1);
    EXPECT_LOG_LINES(" tasks dropped: 38, the first: traced", 1);
}

static const int64_t no_times[][2] = {{2, 1}, {-1, 0}, {-1, 5}, {0, -1}};

TEST_EACH_ABORTS(stop, a_quiet_period_that_is_negative_or_longer_than_the_timeout_is_a_bug,
                 ARRAY_LEN(no_times))
{
    loop_stop(loop, no_times[_i][0], no_times[_i][1]);
}

TEST(stop, stop_that_drops_nothing_is_not_logged)
{
    start();
    stop_ms(0, 0);
    ck_assert_uint_eq(log_lines_with(""), 0);
}
