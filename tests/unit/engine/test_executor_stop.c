/*
 * engine/executor, its end: what was accepted is run or dropped, and once; a task that hangs is
 * waited for no longer than told, and named.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "support/executor_runner.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/race.h"
#include "support/rounds.h"
#include "support/sanitized.h"
#include "support/suite.h"
#include "support/until.h"

#define MANY 40

#define RACE_LINES 8

#define RACES IF_SANITIZED(100, 400)

/* Continues itself until it is told that it is enough, or is refused. */
struct continuing {
    struct task task;
    atomic_uint run;
    atomic_bool enough;
    atomic_int refused;
};

static struct executor *e;
static struct tasks_block block;
static struct tasks_counted tasks[MANY];

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_WARNING);
    tasks_counted_init_all(tasks, MANY);
}

static void submit_many(void)
{
    for (int i = 0; i < MANY; i++)
        ck_assert_int_eq(executor_submit(e, &tasks[i].task), 0);
}

GROUP(stop, setup, NULL);

TEST(stop, queued_tasks_run_within_the_stop_timeout)
{
    e = executor_runner_create(2, 100);
    executor_runner_block(e, &block);
    submit_many();
    executor_stop(e, UNTIL_LIMIT_NS);
    ck_assert_int_eq(executor_submit(e, &tasks[0].task), -ESHUTDOWN);
    tasks_block_end(&block);
    ck_assert_int_eq(executor_join(e, UNTIL_LIMIT_NS), 0);
    ck_assert_uint_eq(tasks_counted_run(tasks, MANY), MANY);
    ck_assert_uint_eq(tasks_counted_dropped(tasks, MANY), 0);
    ck_assert_uint_eq(executor_runner_stats(e).tasks_rejected, 1);
    executor_destroy(e);
}

TEST(stop, stop_with_timeout_0_drops_queued_tasks_before_it_returns)
{
    e = executor_runner_create(1, 100);
    executor_runner_block(e, &block);
    submit_many();
    executor_stop(e, 0);
    ck_assert_uint_eq(tasks_counted_dropped(tasks, MANY), MANY);
    ck_assert_uint_eq(executor_runner_stats(e).tasks_dropped, MANY);
    ck_assert_uint_eq(executor_runner_stats(e).tasks_pending, 0);
    tasks_block_end(&block);
    ck_assert_int_eq(executor_join(e, UNTIL_LIMIT_NS), 0);
    ck_assert_uint_eq(tasks_counted_run(tasks, MANY), 0);
    executor_destroy(e);
}

TEST(stop, join_after_the_timeout_drops_queued_tasks_while_a_task_hangs)
{
    int64_t began_at_ns = clock_now_ns();

    e = executor_runner_create(1, 100);
    executor_runner_block(e, &block);
    submit_many();
    executor_stop(e, 20 * NS_PER_MS);
    ck_assert_int_eq(executor_join(e, 60 * NS_PER_MS), -ETIMEDOUT);
    ck_assert_int_ge(clock_now_ns() - began_at_ns, 60 * NS_PER_MS);
    ck_assert_uint_eq(tasks_counted_dropped(tasks, MANY), MANY);
    ck_assert_str_eq(executor_runner_stats(e).running_name, "block");
    ck_assert_int_eq(executor_join(e, 0), -ETIMEDOUT);
    tasks_block_end(&block);
    ck_assert_int_eq(executor_join(e, UNTIL_LIMIT_NS), 0); /* it is allowed again */
    executor_destroy(e);
}

TEST(stop, join_without_waiting_drops_queued_tasks_after_the_timeout)
{
    e = executor_runner_create(1, 100);
    executor_runner_block(e, &block);
    submit_many();
    executor_stop(e, NS_PER_MS);
    PAUSE_MS(2);
    ck_assert_int_eq(executor_join(e, 0), -ETIMEDOUT);
    ck_assert_uint_eq(tasks_counted_dropped(tasks, MANY), MANY);
    tasks_block_end(&block);
    executor_runner_destroy(e);
}

TEST(stop, thread_drops_queued_tasks_after_the_timeout_without_a_join)
{
    e = executor_runner_create(1, 100);
    executor_runner_block(e, &block);
    submit_many();
    executor_stop(e, NS_PER_MS);
    PAUSE_MS(5);
    tasks_block_end(&block);
    UNTIL(tasks_counted_dropped(tasks, MANY) == MANY);
    ck_assert_uint_eq(tasks_counted_run(tasks, MANY), 0);
    executor_runner_destroy(e);
}

TEST(stop, idle_threads_end_at_once)
{
    int64_t began_at_ns = clock_now_ns();

    e = executor_runner_create(3, 100);
    submit_many();
    executor_stop(e, 3600 * NS_PER_S);
    ck_assert_int_eq(executor_join(e, CLOCK_NEVER), 0);
    ck_assert_int_lt(since_ms(began_at_ns), 20000);
    ck_assert_uint_eq(tasks_counted_run(tasks, MANY), MANY);
    executor_destroy(e);
}

TEST(stop, the_first_stop_decides)
{
    e = executor_runner_create(1, 100);
    executor_runner_block(e, &block);
    submit_many();
    executor_stop(e, UNTIL_LIMIT_NS);
    executor_stop(e, 0);
    ck_assert_uint_eq(tasks_counted_dropped(tasks, MANY), 0);
    tasks_block_end(&block);
    executor_runner_destroy(e);
    ck_assert_uint_eq(tasks_counted_run(tasks, MANY), MANY);
}

TEST(stop, an_executor_without_threads_ends_at_once)
{
    e = executor_runner_create(1, 100);
    executor_stop(e, NS_PER_S);
    ck_assert_int_eq(executor_join(e, 0), 0);
    ck_assert_int_eq(executor_submit(e, &tasks[0].task), -ESHUTDOWN);
    executor_destroy(e);
}

static void continuing_run(struct task *t)
{
    struct continuing *c = CONTAINER_OF(t, struct continuing, task);
    int rc;

    atomic_fetch_add(&c->run, 1);
    if (atomic_load(&c->enough))
        return;
    rc = executor_submit_more(e, t);
    if (rc < 0)
        atomic_store(&c->refused, rc);
}

static const struct task_type continuing_type = {"continuing", continuing_run, tasks_never_dropped};

TEST(stop, task_may_continue_itself_until_the_timeout)
{
    struct continuing c = {.task.type = &continuing_type};
    unsigned before;

    e = executor_runner_create(1, 100);
    ck_assert_int_eq(executor_submit(e, &c.task), 0);
    executor_stop(e, UNTIL_LIMIT_NS);
    before = atomic_load(&c.run);
    UNTIL(atomic_load(&c.run) > before + 10);
    atomic_store(&c.enough, true);
    ck_assert_int_eq(executor_join(e, UNTIL_LIMIT_NS), 0);
    ck_assert_int_eq(atomic_load(&c.refused), 0);
    executor_destroy(e);
}

/* Waits for the stop, and then wants to continue. */
static void late_run(struct task *t)
{
    while (executor_runner_stats(e).tasks_dropped == 0)
        usleep(500);
    continuing_run(t);
}

TEST(stop, a_task_that_continues_when_the_time_is_over_is_refused)
{
    static const struct task_type type = {"late", late_run, tasks_never_dropped};
    struct continuing c = {.task.type = &type};

    e = executor_runner_create(1, 100);
    ck_assert_int_eq(executor_submit(e, &c.task), 0);
    UNTIL(executor_runner_stats(e).running_name);
    ck_assert_int_eq(executor_submit(e, &tasks[0].task), 0);
    executor_stop(e, 0);
    ck_assert_int_eq(executor_join(e, UNTIL_LIMIT_NS), 0);
    ck_assert_int_eq(atomic_load(&c.refused), -ESHUTDOWN);
    ck_assert_uint_eq(atomic_load(&tasks[0].dropped), 1);
    executor_destroy(e);
}

static void stop_from_task(struct task *t)
{
    (void)t;
    executor_stop(e, 0);
}

TEST_ABORTS(stop, a_task_must_not_stop_its_executor)
{
    static const struct task_type type = {"stop", stop_from_task, stop_from_task};
    struct task t = {.type = &type};

    e = executor_runner_create(1, 100);
    ck_assert_int_eq(executor_submit(e, &t), 0);
    PAUSE_MS(10000);
}

/* ---- races ---- */

static int submit_racing(unsigned number, struct task *t)
{
    (void)number;
    return executor_submit(e, t);
}

static void race_once(unsigned round)
{
    struct race_outcome all;
    struct executor_stats stats;

    e = executor_runner_create(1 + round % 3, 50);
    race_begin(submit_racing);
    race_spin(round);
    executor_stop(e, round % 4 ? (round % 4 - 1) * 10 * NS_PER_US : NS_PER_S);
    race_join();
    ck_assert_int_eq(executor_join(e, UNTIL_LIMIT_NS), 0);
    all = race_check();
    stats = executor_runner_stats(e);
    ck_assert_uint_eq(stats.tasks_run, all.run);
    ck_assert_uint_eq(stats.tasks_dropped, all.dropped);
    ck_assert_uint_eq(stats.tasks_rejected, all.refused);
    ck_assert_uint_eq(stats.tasks_pending, 0);
    executor_destroy(e);
}

GROUP(races, setup, NULL);

/* With all threads that it needs, or when some cannot be started. */
TEST_EACH(races, each_task_that_races_with_a_stop_is_run_or_dropped_or_refused, 2)
{
    EACH_ROUND(round, RACES)
    {
        if (_i == 1) /* the race's own threads come first */
            fault_plan(FAULT_PTHREAD_CREATE, RACE_THREADS, 1 + round % 3, EAGAIN);
        race_once(round);
    }
    fault_plan(FAULT_PTHREAD_CREATE, 0, 0, 0);
}

static atomic_uint timers_run, timers_dropped;

static void line_run(struct task *t)
{
    (void)t;
    atomic_fetch_add(&timers_run, 1);
}

static void line_drop(struct task *t)
{
    (void)t;
    atomic_fetch_add(&timers_dropped, 1);
}

static const struct task_type line_type = {"timer", line_run, line_drop};

TEST(races, each_timer_that_races_with_a_stop_is_run_or_dropped)
{
    EACH_ROUND(round, RACES)
    {
        struct timer timers[RACE_LINES];

        atomic_store(&timers_run, 0);
        atomic_store(&timers_dropped, 0);
        e = executor_runner_create(2, 50);
        for (unsigned i = 0; i < RACE_LINES; i++) {
            timer_init(&timers[i], &line_type);
            ck_assert_int_eq(
                executor_schedule(e, &timers[i], (int64_t)(i * round % 50) * NS_PER_US), 0);
        }
        executor_stop(e, round % 2 ? 0 : NS_PER_S);
        ck_assert_int_eq(executor_join(e, UNTIL_LIMIT_NS), 0);
        ck_assert_uint_eq(atomic_load(&timers_run) + atomic_load(&timers_dropped), RACE_LINES);
        executor_destroy(e);
    }
}
