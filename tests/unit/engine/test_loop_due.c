/*
 * engine/loop, timers that are due in crowds: what one costs, and that neither timers nor tasks
 * starve.
 */
#include <stdlib.h>
#include <time.h>

#include "support/loop_runner.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

#define FEW  2000
#define MANY 200000

static struct loop *loop;

struct member {
    struct timer timer;
    unsigned run;
    unsigned dropped;
};

/* Written by the loop, read by the test when the loop has ended or in a call. */
static struct member *crowd;
static unsigned n_crowd, n_run;
static int64_t period_ns, first_cpu_ns, last_cpu_ns;
static struct tasks_counted task;
static unsigned run_before_task;
static atomic_bool over;

static int64_t cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static void member_run(struct task *t)
{
    TIMER_OWNER(t, struct member, timer)->run++;
    if (n_run++ == 0)
        first_cpu_ns = cpu_ns();
    if (n_run == n_crowd) {
        last_cpu_ns = cpu_ns();
        atomic_store(&over, true);
    }
}

static void member_drop(struct task *t)
{
    TIMER_OWNER(t, struct member, timer)->dropped++;
}

static const struct task_type member_type = {
    .name = "member", .run = member_run, .drop = member_drop};

static void schedule_crowd(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < n_crowd; i++) {
        timer_init(&crowd[i].timer, &member_type);
        loop_schedule_every(loop, &crowd[i].timer, 0, period_ns);
    }
}

/*
 * ${n} timers that are due from the same moment on, and what else ${schedule} does in that moment.
 */
static void crowd_begin(unsigned n, int64_t period, void (*schedule)(void *arg), void *arg)
{
    crowd = calloc(n, sizeof(*crowd));
    ck_assert_ptr_nonnull(crowd);
    n_crowd = n;
    n_run = 0;
    period_ns = period;
    atomic_store(&over, false);
    loop = loop_runner_create();
    loop_runner_call(loop, schedule, arg);
}

static void crowd_end(void)
{
    loop_runner_destroy(loop);
    free(crowd);
}

/* Processor time, which other processes do not add to. */
static int64_t cost_of_each(unsigned n)
{
    crowd_begin(n, 0, schedule_crowd, NULL);
    UNTIL(atomic_load(&over));
    crowd_end();
    return (last_cpu_ns - first_cpu_ns) / n;
}

GROUP(due, NULL, NULL);

TEST(due, a_due_timer_costs_the_same_among_many_as_among_few)
{
    int64_t few_ns = cost_of_each(FEW), many_ns = cost_of_each(MANY);

    /*
     * A heap of a hundred times the size, which no cache holds: some times as much, and not a
     * hundred times.
     */
    ck_assert_int_lt(many_ns, 25 * (few_ns + 10));
}

static void expect_equal_runs(void *arg)
{
    unsigned least = UINT32_MAX, most = 0;

    (void)arg;
    for (unsigned i = 0; i < n_crowd; i++) {
        least = crowd[i].run < least ? crowd[i].run : least;
        most = crowd[i].run > most ? crowd[i].run : most;
    }
    ck_assert_uint_ge(least, 1);
    ck_assert_uint_le(most - least, 1);
}

static void late_run(struct task *t)
{
    (void)t;
    atomic_store(&over, true);
}

static const struct task_type late_type = {.name = "late", .run = late_run};

static void schedule_late(void *arg)
{
    loop_schedule(loop, arg, NS_PER_MS);
}

TEST(due, timers_that_are_always_due_take_turns)
{
    struct timer late;

    crowd_begin(5000, 1, schedule_crowd, NULL); /* one run takes longer than the period */
    UNTIL(atomic_load(&over));
    for (int i = 0; i < 20; i++) {
        PAUSE_MS(1);
        loop_runner_call(loop, expect_equal_runs, NULL);
    }
    atomic_store(&over, false);
    timer_init(&late, &late_type);
    loop_runner_call(loop, schedule_late, &late);
    UNTIL(atomic_load(&over)); /* none that becomes due later is kept waiting by them */
    crowd_end();
}

static void submit_task(struct task *t)
{
    (void)t;
    ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &task.task), 0);
}

static void task_run(struct task *t)
{
    run_before_task = n_run;
    atomic_fetch_add(&CONTAINER_OF(t, struct tasks_counted, task)->run, 1);
}

static const struct task_type submitter_type = {.name = "submitter", .run = submit_task};
static const struct task_type task_type = {.name = "task", .run = task_run};

/* The first of the crowd submits a task. */
static void schedule_crowd_and_task(void *arg)
{
    struct timer *submitter = arg;

    tasks_counted_init(&task);
    task.task.type = &task_type;
    timer_init(submitter, &submitter_type);
    loop_schedule(loop, submitter, 0);
    schedule_crowd(NULL);
}

TEST(due, task_does_not_wait_until_all_of_many_due_timers_have_run)
{
    struct timer submitter;

    crowd_begin(MANY, 0, schedule_crowd_and_task, &submitter);
    UNTIL(atomic_load(&over));
    ck_assert_uint_eq(atomic_load(&task.run), 1);
    ck_assert_uint_lt(run_before_task, MANY / 20);
    crowd_end();
}

TEST(due, stop_drops_due_timers_that_have_not_run)
{
    struct loop_stats stats;

    crowd_begin(MANY, 0, schedule_crowd, NULL);
    loop_runner_stop(loop);
    loop_stats(loop, &stats);
    for (unsigned i = 0; i < MANY; i++)
        ck_assert_uint_eq(crowd[i].run + crowd[i].dropped, 1);
    ck_assert_uint_eq(stats.tasks_dropped, MANY - n_run);
    crowd_end();
}
