/* engine/executor: waiting for capacity, and what its counters tell. */
#include <errno.h>

#include "support/executor_runner.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/suite.h"
#include "support/until.h"

#define MANY 40

/* Waits for capacity, and remembers as the how manieth it was told. */
struct waiting {
    struct executor_waiter waiter;
    int run_as; /* 0: not yet */
    atomic_int dropped;
};

static struct executor *e;
static struct tasks_block block;
static struct tasks_counted tasks[MANY];
static int n_told;

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_NOTICE);
    tasks_counted_init_all(tasks, MANY);
}

/* ---- capacity ---- */

static void waiting_run(struct task *t)
{
    struct waiting *w = TIMER_OWNER(t, struct waiting, waiter.timer);

    ck_assert(loop_is_current(w->waiter.loop));
    ck_assert_int_eq(w->run_as, 0);
    w->run_as = ++n_told;
}

static void waiting_drop(struct task *t)
{
    atomic_fetch_add(&TIMER_OWNER(t, struct waiting, waiter.timer)->dropped, 1);
}

static void await_capacity(void *arg)
{
    static const struct task_type type = {"waiting", waiting_run, waiting_drop};
    struct waiting *w = arg;

    timer_init(&w->waiter.timer, &type);
    executor_await_capacity(e, &w->waiter, loop_current());
}

static void read_run_as(void *arg)
{
    *(int *)arg = n_told;
}

/* How many were told, as far as the loop has got. */
static int told(struct loop *loop)
{
    int n;

    loop_runner_call(loop, read_run_as, &n);
    return n;
}

static void fill(unsigned n)
{
    executor_runner_block(e, &block);
    for (unsigned i = 0; i < n; i++)
        ck_assert_int_eq(executor_submit(e, &tasks[i].task), 0);
    ck_assert_int_eq(executor_submit(e, &tasks[n].task), -EAGAIN);
}

GROUP(capacity, setup, NULL);

TEST(capacity, waiters_for_capacity_are_notified_once_and_in_order)
{
    struct loop *loop = loop_runner_create();
    struct waiting waiting[3] = {{.run_as = 0}};

    e = executor_runner_create(1, 16);
    fill(16);
    for (int i = 0; i < 3; i++)
        loop_runner_call(loop, await_capacity, &waiting[i]);
    PAUSE_MS(20);
    ck_assert_int_eq(told(loop), 0);
    tasks_block_end(&block);
    UNTIL(told(loop) == 3);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(waiting[i].run_as, i + 1);
    executor_runner_destroy(e);
    loop_runner_destroy(loop);
}

/* Ends when it is told to; for tasks that are to be let through one by one. */
static sem_t steps;

static void step_run(struct task *t)
{
    (void)t;
    while (sem_wait(&steps) < 0)
        ;
}

TEST(capacity, capacity_is_available_when_at_most_half_of_the_bound_is_pending)
{
    static const struct task_type type = {"step", step_run, tasks_never_dropped};
    struct loop *loop = loop_runner_create();
    struct waiting w = {.run_as = 0};
    struct task step[17];

    sem_init(&steps, 0, 0);
    e = executor_runner_create(1, 16);
    for (int i = 0; i < 17; i++)
        step[i].type = &type;
    ck_assert_int_eq(executor_submit(e, &step[0]), 0);
    UNTIL(executor_runner_stats(e).tasks_pending == 0); /* it has begun */
    for (int i = 1; i <= 16; i++)
        ck_assert_int_eq(executor_submit(e, &step[i]), 0);
    loop_runner_call(loop, await_capacity, &w);
    for (unsigned pending = 16; pending > 8; pending--) {
        ck_assert_uint_eq(executor_runner_stats(e).tasks_pending, pending);
        ck_assert_int_eq(told(loop), 0);
        sem_post(&steps);
        UNTIL(executor_runner_stats(e).tasks_pending == pending - 1);
    }
    UNTIL(told(loop) == 1);
    for (int i = 0; i < 9; i++)
        sem_post(&steps);
    executor_runner_destroy(e);
    loop_runner_destroy(loop);
}

TEST(capacity, waiter_is_notified_at_once_when_capacity_is_available)
{
    struct loop *loop = loop_runner_create();
    struct waiting w = {.run_as = 0};

    e = executor_runner_create(1, 16);
    executor_runner_block(e, &block);
    loop_runner_call(loop, await_capacity, &w);
    UNTIL(told(loop) == 1);
    tasks_block_end(&block);
    executor_runner_destroy(e);
    loop_runner_destroy(loop);
}

TEST(capacity, stop_ends_the_wait_for_capacity)
{
    struct loop *loop = loop_runner_create();
    struct waiting before = {.run_as = 0}, after = {.run_as = 0};

    e = executor_runner_create(1, 16);
    fill(16);
    loop_runner_call(loop, await_capacity, &before);
    executor_stop(e, UNTIL_LIMIT_NS);
    UNTIL(told(loop) == 1);
    loop_runner_call(loop, await_capacity, &after); /* nor can one begin then */
    UNTIL(told(loop) == 2);
    tasks_block_end(&block);
    executor_runner_destroy(e);
    loop_runner_destroy(loop);
}

TEST(capacity, waiter_of_an_ended_loop_is_dropped)
{
    struct loop *loop = loop_runner_create();
    struct waiting w = {.run_as = 0};

    e = executor_runner_create(1, 16);
    fill(16);
    loop_runner_call(loop, await_capacity, &w);
    loop_runner_stop(loop);
    ck_assert_int_eq(atomic_load(&w.dropped), 0);
    tasks_block_end(&block);
    UNTIL(atomic_load(&w.dropped) == 1);
    ck_assert_int_eq(w.run_as, 0);
    executor_runner_destroy(e);
    loop_runner_destroy(loop);
}

TEST(capacity, waiter_without_an_executor_thread_retries_without_spinning)
{
    struct loop *loop = loop_runner_create();
    struct waiting w = {.run_as = 0};
    int64_t began_at_ns = clock_now_ns();

    e = executor_runner_create(1, 16);
    loop_runner_call(loop, await_capacity, &w);
    UNTIL(told(loop) == 1);
    ck_assert_int_ge(clock_now_ns() - began_at_ns, 10 * NS_PER_MS);
    executor_runner_destroy(e);
    loop_runner_destroy(loop);
}

/* ---- what it tells ---- */

GROUP(stats, setup, NULL);

TEST(stats, counters_show_running_and_pending_tasks)
{
    struct executor_stats stats;

    e = executor_runner_create(1, 16);
    executor_runner_block(e, &block);
    ck_assert_int_eq(executor_submit(e, &tasks[0].task), 0);
    PAUSE_MS(20);
    stats = executor_runner_stats(e);
    ck_assert_str_eq(stats.running_name, "block");
    ck_assert_int_ge(stats.running_ns, 20 * NS_PER_MS);
    ck_assert_uint_eq(stats.tasks_pending, 1);
    ck_assert_int_ge(stats.oldest_ns, 20 * NS_PER_MS);
    ck_assert_ptr_null(stats.longest_name);
    tasks_block_end(&block);
    executor_runner_end(e);
    stats = executor_runner_stats(e);
    ck_assert_ptr_null(stats.running_name);
    ck_assert_int_eq(stats.running_ns, 0);
    ck_assert_int_eq(stats.oldest_ns, 0);
    ck_assert_uint_eq(stats.tasks_pending, 0);
    ck_assert_uint_eq(stats.tasks_run, 2);
    ck_assert_str_eq(stats.longest_name, "block");
    ck_assert_int_ge(stats.longest_ns, 20 * NS_PER_MS);
    executor_destroy(e);
}

static void nap_run(struct task *t)
{
    (void)t;
    PAUSE_MS(30);
}

TEST(stats, longest_running_task_of_several_is_named)
{
    static const struct task_type type = {"nap", nap_run, tasks_never_dropped};
    struct task nap = {.type = &type};

    e = executor_runner_create(2, 16);
    executor_runner_block(e, &block);
    PAUSE_MS(2);
    ck_assert_int_eq(executor_submit(e, &nap), 0);
    PAUSE_MS(10);
    ck_assert_str_eq(executor_runner_stats(e).running_name, "block");
    tasks_block_end(&block);
    executor_runner_destroy(e);
}
