/*
 * engine/loop, max_pending_tasks: who is refused, who tries again, and that nobody's task is lost
 * over it.
 */
#include <errno.h>
#include <pthread.h>

#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/observe.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

#define FULL    LOOP_PENDING_MIN
#define FOREVER 1000000 /* retries */

static struct loop *loop;
static struct tasks_block block;
static struct tasks_counted filling[2 * FULL];
static struct tasks_counted one;

static struct loop *create(unsigned max_pending_tasks, struct loop_backoff backoff)
{
    struct loop_conf conf = {.name = "test",
                             .budget = {.io_ratio = 50, .quantum_ns = 100 * NS_PER_MS},
                             .max_pending_tasks = max_pending_tasks,
                             .backoff = backoff};
    struct loop *l;

    ck_assert_int_eq(loop_create(&l, &conf), 0);
    return l;
}

static void setup_with(unsigned max_pending_tasks, struct loop_backoff backoff)
{
    log_lines_capture(LOG_LEVEL_WARNING);
    loop = create(max_pending_tasks, backoff);
    tasks_counted_init(&one);
}

static void setup(unsigned max_pending_tasks)
{
    setup_with(max_pending_tasks, (struct loop_backoff){.retries = 0});
}

static int submit(struct tasks_counted *t)
{
    return loop_submit(loop, LOOP_TASKS, &t->task);
}

/*
 * Submit until one is refused; how many were not. Lazily, so that a loop that sleeps stays asleep.
 */
static unsigned fill(void)
{
    for (unsigned i = 0; i < ARRAY_LEN(filling); i++) {
        tasks_counted_init(&filling[i]);
        if (loop_submit_lazy(loop, LOOP_TASKS, &filling[i].task) == -EAGAIN)
            return i;
    }
    ck_abort_msg("nobody was refused");
    return 0;
}

static void expect_filling_run_once(unsigned n)
{
    for (unsigned i = 0; i < ARRAY_LEN(filling); i++) {
        ck_assert_uint_eq(atomic_load(&filling[i].run), i < n);
        ck_assert_uint_eq(atomic_load(&filling[i].dropped), 0);
    }
}

static uint64_t rejected(void)
{
    struct loop_stats stats;

    loop_stats(loop, &stats);
    return stats.tasks_rejected;
}

GROUP(bound, NULL, NULL);

TEST(bound, full_loop_refuses_and_leaves_the_task_to_the_caller)
{
    struct tasks_counted tasks[40];
    unsigned accepted = 0;

    setup(32);
    tasks_block_begin(&block, loop);
    for (int i = 0; i < 40; i++) {
        int rc;

        tasks_counted_init(&tasks[i]);
        rc = i % 2 ? submit(&tasks[i]) : loop_submit_lazy(loop, LOOP_TASKS, &tasks[i].task);
        ck_assert_int_eq(rc, i < 31 ? 0 : -EAGAIN); /* the one that blocks is the 32nd */
        accepted += rc == 0;
    }
    tasks_block_end(&block);
    loop_runner_destroy(loop);
    for (unsigned i = 0; i < 40; i++) {
        ck_assert_uint_eq(atomic_load(&tasks[i].run), i < accepted);
        ck_assert_uint_eq(atomic_load(&tasks[i].dropped), 0);
    }
}

static const unsigned small_bounds[] = {0, 1, 2, FULL - 1, FULL};

TEST_EACH(bound, a_bound_below_16_counts_as_16, ARRAY_LEN(small_bounds))
{
    setup(small_bounds[_i]);
    tasks_block_begin(&block, loop);
    ck_assert_uint_eq(fill(), FULL - 1); /* and the one that blocks */
    tasks_block_end(&block);
    loop_runner_destroy(loop);
    expect_filling_run_once(FULL - 1);
}

TEST(bound, full_loop_accepts_again_after_its_tasks_have_run)
{
    setup(FULL);
    tasks_block_begin(&block, loop);
    ck_assert_uint_eq(fill(), FULL - 1);
    ck_assert_int_eq(submit(&one), -EAGAIN);
    tasks_block_end(&block);
    UNTIL(atomic_load(&filling[FULL - 2].run) == 1);
    UNTIL(submit(&one) == 0);
    UNTIL(atomic_load(&one.run) == 1);
    loop_runner_destroy(loop);
}

TEST(bound, bound_does_not_apply_to_control_and_tail_tasks)
{
    struct tasks_counted tasks[100];

    setup(FULL);
    tasks_block_begin(&block, loop);
    ck_assert_uint_eq(fill(), FULL - 1);
    for (int i = 0; i < 100; i++) {
        tasks_counted_init(&tasks[i]);
        ck_assert_int_eq(loop_submit(loop, i % 2 ? LOOP_CONTROL : LOOP_TAIL, &tasks[i].task), 0);
    }
    tasks_block_end(&block);
    for (int i = 0; i < 100; i++)
        UNTIL(atomic_load(&tasks[i].run) == 1);
    loop_runner_destroy(loop);
}

TEST(bound, availability_bounds_hand_overs_and_other_control_tasks_are_accepted)
{
    struct tasks_counted tasks[2 * FULL];

    setup(FULL);
    tasks_block_begin(&block, loop);
    for (int i = 0; i < 2 * FULL; i++) {
        /* A boss looks before it accepts a client. */
        ck_assert_int_eq(loop_availability(loop), i < FULL ? LOOP_AVAILABLE : LOOP_FULL);
        tasks_counted_init(&tasks[i]);
        ck_assert_int_eq(loop_submit(loop, LOOP_CONTROL, &tasks[i].task), 0);
    }
    tasks_block_end(&block);
    UNTIL(loop_availability(loop) == LOOP_AVAILABLE);
    loop_runner_stop(loop);
    for (int i = 0; i < 2 * FULL; i++)
        ck_assert_uint_eq(atomic_load(&tasks[i].run), 1);
    ck_assert_int_eq(loop_availability(loop), LOOP_NOT_AVAILABLE);
    loop_destroy(loop);
}

TEST(bound, each_refusal_is_counted_and_nothing_else_is)
{
    setup(FULL);
    tasks_block_begin(&block, loop);
    ck_assert_uint_eq(fill(), FULL - 1);
    ck_assert_uint_eq(rejected(), 1);
    ck_assert_int_eq(submit(&one), -EAGAIN);
    ck_assert_int_eq(loop_submit_lazy(loop, LOOP_TASKS, &one.task), -EAGAIN);
    ck_assert_uint_eq(rejected(), 3);
    ck_assert_int_eq(loop_submit(loop, LOOP_CONTROL, &one.task), 0);
    tasks_block_end(&block);
    loop_runner_stop(loop);
    ck_assert_uint_eq(rejected(), 3);
    ck_assert_int_eq(submit(&one), -ESHUTDOWN);
    ck_assert_uint_eq(rejected(), 4);
    loop_destroy(loop);
}

/* Submits itself again and again, and is then the only one that waits. */
struct chain {
    struct task task;
    unsigned left;
    atomic_bool over;
};

static void chain_run(struct task *t)
{
    struct chain *c = CONTAINER_OF(t, struct chain, task);

    if (--c->left == 0 || loop_submit(loop, LOOP_TASKS, t) < 0)
        atomic_store(&c->over, true);
}

TEST(bound, tasks_that_have_run_do_not_count_in_the_bound)
{
    static const struct task_type type = {.name = "chain", .run = chain_run};
    struct chain chain = {.task.type = &type, .left = 10000};

    setup(FULL);
    ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &chain.task), 0);
    UNTIL(atomic_load(&chain.over));
    ck_assert_uint_eq(rejected(), 0);
    loop_runner_destroy(loop);
    ck_assert_uint_eq(chain.left, 0);
}

/* ---- backoff ---- */

/* Submits `one` from another thread, as `_i` says. */
struct submission {
    pthread_t thread;
    int how; /* 0: now, 1: lazily, 2: a timer */
    int rc;
    struct tasks_trace trace;
    struct tasks_timer timer;
};

static struct submission submission;

static void *submit_elsewhere(void *arg)
{
    struct submission *s = arg;

    if (s->how == 0)
        s->rc = submit(&one);
    else if (s->how == 1)
        s->rc = loop_submit_lazy(loop, LOOP_TASKS, &one.task);
    else
        s->rc = loop_submit_after(loop, &s->timer.timer, 0, 0);
    return NULL;
}

static void submission_begin(int how)
{
    submission = (struct submission){.how = how, .rc = 1};
    tasks_timer_init(&submission.timer, &submission.trace, 't');
    pthread_create(&submission.thread, NULL, submit_elsewhere, &submission);
}

static int submission_end(void)
{
    pthread_join(submission.thread, NULL);
    return submission.rc;
}

GROUP(backoff, NULL, NULL);

TEST_EACH(backoff, submitter_that_may_sleep_retries_until_it_is_accepted, 3)
{
    setup_with(FULL, (struct loop_backoff){.retries = FOREVER, .delay_ns = 2 * NS_PER_MS});
    tasks_block_begin(&block, loop);
    for (unsigned i = 0; i < FULL - 1; i++) {
        tasks_counted_init(&filling[i]);
        ck_assert_int_eq(submit(&filling[i]), 0);
    }
    submission_begin(_i);
    PAUSE_MS(50);
    tasks_block_end(&block);
    ck_assert_int_eq(submission_end(), 0);
    ck_assert_uint_eq(rejected(), 0);
    UNTIL(loop_runner_stats(loop).tasks_pending == 1); /* the one that asks */
    PAUSE_MS(5);
    loop_runner_stop(loop);
    if (_i < 2)
        ck_assert_uint_eq(atomic_load(&one.run), 1);
    else
        ck_assert_uint_gt(submission.trace.len, 0); /* run, or dropped if the stop came first */
    loop_destroy(loop);
}

TEST_EACH(backoff, submitter_is_refused_after_its_last_retry, 3)
{
    int64_t began_at_ns;

    setup_with(FULL, (struct loop_backoff){.retries = 3, .delay_ns = 10 * NS_PER_MS});
    tasks_block_begin(&block, loop);
    (void)fill();
    ck_assert_uint_eq(rejected(), 1);
    began_at_ns = clock_now_ns();
    submission_begin(_i);
    ck_assert_int_eq(submission_end(), -EAGAIN);
    ck_assert_int_ge(clock_now_ns() - began_at_ns, 30 * NS_PER_MS);
    ck_assert_uint_eq(rejected(), 2);
    tasks_block_end(&block);
    loop_runner_stop(loop);
    ck_assert_uint_eq(atomic_load(&one.run) + atomic_load(&one.dropped), 0);
    ck_assert_uint_eq(submission.trace.len, 0);
    loop_destroy(loop);
}

TEST(backoff, each_retry_wakes_a_loop_that_sleeps_with_a_full_queue)
{
    struct loop_stats before, after;

    setup_with(FULL, (struct loop_backoff){.retries = FOREVER, .delay_ns = NS_PER_MS});
    observe_until_asleep(loop);
    loop_stats(loop, &before);
    for (unsigned i = 0; i < FULL; i++) {
        tasks_counted_init(&filling[i]);
        ck_assert_int_eq(loop_submit_lazy(loop, LOOP_TASKS, &filling[i].task), 0);
    }
    PAUSE_MS(20);
    loop_stats(loop, &after);
    ck_assert_uint_eq(after.wakeups_sent, before.wakeups_sent);
    ck_assert_uint_eq(after.tasks_pending, FULL);
    ck_assert_int_eq(loop_submit_lazy(loop, LOOP_TASKS, &one.task), 0);
    loop_runner_destroy(loop);
    expect_filling_run_once(FULL);
    ck_assert_uint_eq(atomic_load(&one.run), 1);
}

TEST(backoff, refusal_wakes_a_loop_that_sleeps_with_a_full_queue)
{
    setup(FULL);
    observe_until_asleep(loop);
    for (unsigned i = 0; i < FULL; i++) {
        tasks_counted_init(&filling[i]);
        ck_assert_int_eq(loop_submit_lazy(loop, LOOP_TASKS, &filling[i].task), 0);
    }
    ck_assert_int_eq(submit(&one), -EAGAIN);
    UNTIL(submit(&one) == 0);
    UNTIL(atomic_load(&one.run) == 1);
    loop_runner_destroy(loop);
    expect_filling_run_once(FULL);
}

/* Fill `loop` from a thread that is a loop; how long that took. */
static void fill_from_a_loop(void *arg)
{
    int64_t *took_ms = arg, began_at_ns = clock_now_ns();

    (void)fill();
    *took_ms = since_ms(began_at_ns);
}

static const struct loop_backoff patient = {.retries = 1, .delay_ns = 40 * NS_PER_S};

TEST(backoff, the_loop_itself_is_refused_at_once)
{
    int64_t took_ms = -1;

    setup_with(FULL, patient);
    loop_runner_call(loop, fill_from_a_loop, &took_ms);
    ck_assert_int_lt(took_ms, 20000);
    ck_assert_uint_eq(rejected(), 1);
    loop_runner_destroy(loop);
    expect_filling_run_once(FULL);
}

TEST(backoff, other_loop_is_refused_at_once)
{
    struct loop *other = create(FULL, patient);
    int64_t took_ms = -1;

    setup_with(FULL, patient);
    tasks_block_begin(&block, loop);
    loop_runner_call(other, fill_from_a_loop, &took_ms);
    ck_assert_int_lt(took_ms, 20000);
    ck_assert_uint_eq(rejected(), 1);
    tasks_block_end(&block);
    loop_runner_destroy(loop);
    loop_runner_destroy(other);
    expect_filling_run_once(FULL - 1);
}

TEST(backoff, submitter_that_retries_when_the_loop_ends_is_refused)
{
    setup_with(FULL, (struct loop_backoff){.retries = FOREVER, .delay_ns = NS_PER_MS});
    tasks_block_begin(&block, loop);
    for (unsigned i = 0; i < FULL - 1; i++) {
        tasks_counted_init(&filling[i]);
        ck_assert_int_eq(submit(&filling[i]), 0);
    }
    submission_begin(0);
    PAUSE_MS(10);
    loop_stop(loop, 0, 0);
    tasks_block_end(&block);
    loop_runner_join(loop);
    if (submission_end() < 0) /* it may have got in at the last moment */
        ck_assert_int_eq(submission.rc, -ESHUTDOWN);
    ck_assert_uint_eq(atomic_load(&one.run) + atomic_load(&one.dropped), submission.rc == 0);
    loop_destroy(loop);
}

#define THREADS 4
#define EACH    500

static struct tasks_counted crowd[THREADS][EACH];

static void *submit_crowd(void *arg)
{
    struct tasks_counted *mine = arg;

    for (int i = 0; i < EACH; i++) {
        tasks_counted_init(&mine[i]);
        if (submit(&mine[i]) < 0)
            return arg;
    }
    return NULL;
}

TEST(backoff, many_submitters_to_a_small_queue_lose_no_task)
{
    pthread_t threads[THREADS];
    void *refused;

    setup_with(FULL, (struct loop_backoff){.retries = FOREVER, .delay_ns = 100 * NS_PER_US});
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, submit_crowd, crowd[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &refused);
        ck_assert_ptr_null(refused);
    }
    loop_runner_stop(loop);
    ck_assert_uint_eq(rejected(), 0);
    for (int i = 0; i < THREADS; i++)
        for (int j = 0; j < EACH; j++)
            ck_assert_uint_eq(atomic_load(&crowd[i][j].run), 1);
    loop_destroy(loop);
}
