/*
 * engine/executor, its timers: never early, in order, not starved and starving nobody.
 */
#include <errno.h>
#include <pthread.h>

#include "support/executor_runner.h"
#include "support/fault.h"
#include "support/suite.h"
#include "support/until.h"

#define MANY 100

/* Notes when it ran. */
struct stamped {
    struct timer timer;
    _Atomic int64_t run_at_ns; /* 0: not yet */
    atomic_uint dropped;
};

/* Submits itself again and again, so that the queue is never empty, until it is told to stop. */
struct restless {
    struct task task;
    struct executor *e;
    atomic_bool over;
};

/* A timer that does the same. */
struct tireless {
    struct timer timer;
    atomic_bool over;
};

static struct executor *e;
static struct tasks_block block;
static struct tasks_trace trace;

static void stamped_run(struct task *t)
{
    atomic_store(&TIMER_OWNER(t, struct stamped, timer)->run_at_ns, clock_now_ns());
}

static void stamped_drop(struct task *t)
{
    atomic_fetch_add(&TIMER_OWNER(t, struct stamped, timer)->dropped, 1);
}

static void stamped_init(struct stamped *s)
{
    static const struct task_type type = {"stamped", stamped_run, stamped_drop};

    timer_init(&s->timer, &type);
    atomic_init(&s->run_at_ns, 0);
    atomic_init(&s->dropped, 0);
}

static void restless_run(struct task *t)
{
    struct restless *r = CONTAINER_OF(t, struct restless, task);

    if (!atomic_load(&r->over))
        ck_assert_int_eq(executor_submit_more(r->e, t), 0);
}

static void tireless_run(struct task *t)
{
    struct tireless *r = TIMER_OWNER(t, struct tireless, timer);

    if (!atomic_load(&r->over))
        (void)!executor_schedule(e, &r->timer, 0);
}

static void tireless_init(struct tireless *r)
{
    static const struct task_type type = {.name = "tireless", .run = tireless_run};

    timer_init(&r->timer, &type);
    atomic_init(&r->over, false);
}

static const struct task_type restless_type = {"restless", restless_run, tasks_never_dropped};

static void add_traced(struct tasks_timer *t, char letter, int64_t delay_ns)
{
    tasks_timer_init(t, &trace, letter);
    ck_assert_int_eq(executor_schedule(e, &t->timer, delay_ns), 0);
}

GROUP(when, NULL, NULL);

TEST(when, a_timer_never_runs_early)
{
    struct stamped timers[MANY];
    int64_t due_at_ns[MANY];

    e = executor_runner_create(2, 100);
    for (int i = 0; i < MANY; i++) {
        int64_t delay_ns = (int64_t)(i * 37 % MANY) * NS_PER_MS / 2;

        stamped_init(&timers[i]);
        due_at_ns[i] = clock_now_ns() + delay_ns;
        ck_assert_int_eq(executor_schedule(e, &timers[i].timer, delay_ns), 0);
    }
    UNTIL(executor_runner_stats(e).tasks_run == MANY);
    for (int i = 0; i < MANY; i++)
        ck_assert_int_ge(atomic_load(&timers[i].run_at_ns), due_at_ns[i]);
    executor_runner_destroy(e);
}

TEST(when, timers_run_in_the_order_of_their_instants)
{
    const int64_t delays_ms[5] = {20, -1, 5, 0, 30}; /* a negative one counts as 0 */
    struct tasks_timer timers[5];

    e = executor_runner_create(1, 100);
    executor_runner_block(e, &block);
    for (int i = 0; i < 5; i++)
        add_traced(&timers[i], (char)('0' + i), delays_ms[i] * NS_PER_MS);
    tasks_block_end(&block);
    UNTIL(executor_runner_stats(e).tasks_run == 6);
    executor_runner_destroy(e);
    ck_assert_uint_eq(trace.len, 5);
    for (int i = 1; i < 5; i++)
        ck_assert_int_le(timers[trace.text[i - 1] - '0'].timer.at_ns,
                         timers[trace.text[i] - '0'].timer.at_ns);
}

TEST(when, due_timer_runs_behind_queued_tasks_and_before_later_tasks)
{
    struct tasks_traced first[3], later;
    struct tasks_timer timer;
    struct tasks_block again;

    e = executor_runner_create(1, 100);
    executor_runner_block(e, &block);
    add_traced(&timer, 't', 0);
    for (int i = 0; i < 3; i++) {
        tasks_traced_init(&first[i], &trace, (char)('a' + i));
        ck_assert_int_eq(executor_submit(e, &first[i].task), 0);
    }
    /* The thread sees that the timer is due as it takes the first of these. */
    tasks_block_end(&block);
    executor_runner_block(e, &again);
    tasks_traced_init(&later, &trace, 'z');
    ck_assert_int_eq(executor_submit(e, &later.task), 0);
    tasks_block_end(&again);
    executor_runner_destroy(e);
    ck_assert_str_eq(trace.text, "abctz");
}

/* Regression of Netty #1614: with the queue never empty, timers were never looked at. */
TEST(when, a_timer_runs_although_the_queue_is_never_empty)
{
    struct restless restless[2] = {{.task.type = &restless_type}, {.task.type = &restless_type}};
    struct stamped timer;
    int64_t due_at_ns;

    restless[0].e = restless[1].e = e = executor_runner_create(1, 100);
    stamped_init(&timer);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(executor_submit(e, &restless[i].task), 0);
    due_at_ns = clock_now_ns() + 50 * NS_PER_MS;
    ck_assert_int_eq(executor_schedule(e, &timer.timer, 50 * NS_PER_MS), 0);
    UNTIL(atomic_load(&timer.run_at_ns) > 0);
    ck_assert_int_ge(atomic_load(&timer.run_at_ns), due_at_ns);
    for (int i = 0; i < 2; i++)
        atomic_store(&restless[i].over, true);
    executor_runner_destroy(e);
}

TEST(when, timers_that_are_always_due_do_not_starve_the_queue)
{
    struct tireless timers[2];
    struct tasks_counted tasks[MANY];

    e = executor_runner_create(1, MANY);
    for (int i = 0; i < 2; i++) {
        tireless_init(&timers[i]);
        ck_assert_int_eq(executor_schedule(e, &timers[i].timer, 0), 0);
    }
    for (int i = 0; i < MANY; i++) {
        tasks_counted_init(&tasks[i]);
        ck_assert_int_eq(executor_submit(e, &tasks[i].task), 0);
    }
    UNTIL(executor_runner_stats(e).tasks_pending == 0);
    for (int i = 0; i < 2; i++)
        atomic_store(&timers[i].over, true);
    executor_runner_destroy(e);
}

TEST(when, an_earlier_timer_shortens_the_sleep)
{
    struct stamped late, early;
    int64_t began_at_ns = clock_now_ns();

    e = executor_runner_create(2, 100);
    stamped_init(&late);
    stamped_init(&early);
    ck_assert_int_eq(executor_schedule(e, &late.timer, 3600 * NS_PER_S), 0);
    PAUSE_MS(20); /* a thread sleeps for an hour now */
    ck_assert_int_eq(executor_schedule(e, &early.timer, NS_PER_MS), 0);
    UNTIL(atomic_load(&early.run_at_ns) > 0);
    ck_assert_int_lt(since_ms(began_at_ns), 10000);
    executor_runner_destroy(e);
    ck_assert_uint_eq(atomic_load(&late.dropped), 1);
}

TEST(when, timer_is_not_late_when_the_thread_watching_it_gets_a_task)
{
    struct stamped timer;

    e = executor_runner_create(2, 100);
    stamped_init(&timer);
    ck_assert_int_eq(executor_schedule(e, &timer.timer, 50 * NS_PER_MS), 0);
    PAUSE_MS(10);
    executor_runner_block(e, &block); /* takes the only thread, so another has to watch */
    UNTIL(atomic_load(&timer.run_at_ns) > 0);
    tasks_block_end(&block);
    executor_runner_destroy(e);
}

TEST(when, timers_that_are_due_together_run_on_all_threads)
{
    struct tasks_meeting meetings[4];
    pthread_barrier_t barrier;

    pthread_barrier_init(&barrier, NULL, 4);
    e = executor_runner_create(4, 100);
    for (int i = 0; i < 4; i++) {
        tasks_meeting_init(&meetings[i], &barrier);
        ck_assert_int_eq(executor_schedule(e, &meetings[i].timer, 10 * NS_PER_MS), 0);
    }
    UNTIL(executor_runner_stats(e).tasks_run == 4);
    executor_runner_destroy(e);
}

TEST(when, endless_delay_is_accepted)
{
    struct stamped timer;

    e = executor_runner_create(1, 100);
    stamped_init(&timer);
    ck_assert_int_eq(executor_schedule(e, &timer.timer, INT64_MAX), 0);
    PAUSE_MS(20);
    ck_assert_int_eq(atomic_load(&timer.run_at_ns), 0);
    executor_runner_destroy(e);
    ck_assert_uint_eq(atomic_load(&timer.dropped), 1);
}

TEST(when, timers_do_not_count_as_pending)
{
    struct stamped timers[MANY];

    e = executor_runner_create(1, 16);
    executor_runner_block(e, &block);
    for (int i = 0; i < MANY; i++) {
        stamped_init(&timers[i]);
        ck_assert_int_eq(executor_schedule(e, &timers[i].timer, 0), 0);
    }
    ck_assert_uint_eq(executor_runner_stats(e).tasks_pending, 0);
    tasks_block_end(&block);
    UNTIL(executor_runner_stats(e).tasks_run == MANY + 1);
    ck_assert_uint_eq(executor_runner_stats(e).tasks_pending, 0);
    executor_runner_destroy(e);
}

GROUP(end, NULL, NULL);

TEST(end, a_timer_that_has_begun_can_be_scheduled_again)
{
    struct stamped timer;

    e = executor_runner_create(1, 100);
    stamped_init(&timer);
    for (int i = 0; i < 10; i++) {
        atomic_store(&timer.run_at_ns, 0);
        ck_assert_int_eq(executor_schedule(e, &timer.timer, 0), 0);
        UNTIL(atomic_load(&timer.run_at_ns) > 0);
    }
    executor_runner_destroy(e);
}

TEST(end, timer_for_which_no_thread_starts_stays_the_callers)
{
    struct stamped timer;

    e = executor_runner_create(1, 100);
    stamped_init(&timer);
    fault_plan(FAULT_PTHREAD_CREATE, 0, 1, EAGAIN);
    ck_assert_int_eq(executor_schedule(e, &timer.timer, 0), -EAGAIN);
    ck_assert_int_eq(executor_schedule(e, &timer.timer, 0), 0);
    UNTIL(atomic_load(&timer.run_at_ns) > 0);
    executor_runner_end(e);
    ck_assert_int_eq(executor_schedule(e, &timer.timer, 0), -ESHUTDOWN);
    ck_assert_uint_eq(atomic_load(&timer.dropped), 0);
    executor_destroy(e);
}

TEST(end, waiting_timers_are_dropped_by_the_stopping_thread)
{
    struct stamped timers[MANY];

    e = executor_runner_create(2, 100);
    for (int i = 0; i < MANY; i++) {
        stamped_init(&timers[i]);
        ck_assert_int_eq(executor_schedule(e, &timers[i].timer, 3600 * NS_PER_S), 0);
    }
    executor_stop(e, NS_PER_S);
    for (int i = 0; i < MANY; i++)
        ck_assert_uint_eq(atomic_load(&timers[i].dropped), 1);
    executor_runner_end(e);
    ck_assert_uint_eq(executor_runner_stats(e).tasks_dropped, MANY);
    executor_destroy(e);
}
