/*
 * engine/strand: how it ends: destroyed, with its executor, and with its loop.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "engine/strand.h"
#include "support/executor_runner.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/rounds.h"
#include "support/sanitized.h"
#include "support/strands.h"
#include "support/suite.h"
#include "support/until.h"

#define RACES IF_SANITIZED(150, 1000)

/* ---- its end ---- */

GROUP(end, strands_setup, strands_teardown);

TEST(end, destroying_drops_queued_tasks)
{
    strands.executor = executor_runner_create(1, 100);
    executor_runner_block(strands.executor, &strands.block);
    strands_create(&strands.strand, 20, strands_count_notified);
    strands_submit_numbered(0, 20);
    strands_destroy(strands.strand); /* its place is still queued */
    ck_assert_uint_eq(atomic_load(&strands.n_dropped), 20);
    ck_assert_uint_eq(executor_runner_stats(strands.executor).tasks_pending, 0);
    ck_assert_uint_eq(executor_runner_stats(strands.executor).tasks_dropped, 20);
    ck_assert_int_eq(executor_runner_stats(strands.executor).oldest_ns, 0);
    tasks_block_end(&strands.block);
    UNTIL(executor_runner_stats(strands.executor).tasks_run == 1); /* the block */
    PAUSE_MS(10);
    ck_assert_uint_eq(atomic_load(&strands.n_run), 0);
    ck_assert_uint_eq(executor_runner_stats(strands.executor).tasks_run, 1);
}

TEST(end, destroying_lets_the_running_task_finish)
{
    pthread_barrier_t barrier;
    struct tasks_meeting meeting;

    pthread_barrier_init(&barrier, NULL, 2);
    tasks_meeting_init(&meeting, &barrier);
    strands.executor = executor_runner_create(1, 100);
    strands_create(&strands.strand, 20, strands_count_notified);
    ck_assert_int_eq(strands_submit(strands.strand, &meeting.timer.task), 0);
    UNTIL(executor_runner_stats(strands.executor).running_name);
    strands_submit_numbered(0, 10);
    strands_destroy(strands.strand);
    ck_assert_uint_eq(atomic_load(&strands.n_dropped), 10);
    pthread_barrier_wait(&barrier);
    UNTIL(executor_runner_stats(strands.executor).tasks_run == 1);
    ck_assert_uint_eq(atomic_load(&strands.n_run), 0);
}

/* On the loop: make the notification come, and destroy the strand before the loop gets to it. */
static void refuse_and_destroy(void *arg)
{
    int rc;

    (void)arg;
    do {
        rc = strand_submit(strands.strand, &strands.tasks[0].task);
        ck_assert(rc == 0 || rc == -EAGAIN);
    } while (rc == 0);
    tasks_block_end(&strands.block);
    while (executor_runner_stats(strands.executor).tasks_pending > 0)
        sched_yield();
    strand_destroy(strands.strand);
}

TEST(end, destroyed_strand_gets_no_notification_that_was_on_its_way)
{
    strands.executor = executor_runner_create(1, 100);
    executor_runner_block(strands.executor, &strands.block);
    strands_create(&strands.strand, 1, strands_count_notified);
    strands_numbered_init(&strands.tasks[0], &strands.seen, 0);
    loop_runner_call(strands.loop, refuse_and_destroy, NULL);
    PAUSE_MS(10);
    ck_assert_uint_eq(strands_notified(), 0);
    ck_assert_uint_eq(atomic_load(&strands.n_run) + atomic_load(&strands.n_dropped), 1);
}

TEST(end, destroyed_strand_gets_no_later_notification_of_the_executor)
{
    strands.executor = executor_runner_create(1, 16);
    executor_runner_block(strands.executor, &strands.block);
    strands_create(&strands.strand, 1, strands_count_notified);
    strands_fill_executor();
    strands_numbered_init(&strands.tasks[0], &strands.seen, 0);
    ck_assert_int_eq(strands_submit(strands.strand, &strands.tasks[0].task),
                     -EAGAIN); /* waits for the executor */
    strands_destroy(strands.strand);
    tasks_block_end(&strands.block);
    UNTIL(executor_runner_stats(strands.executor).tasks_pending == 0);
    PAUSE_MS(10);
    ck_assert_uint_eq(strands_notified(), 0);
}

TEST(end, destroyed_strand_gets_no_notification_after_a_failed_thread_start)
{
    unsigned before;

    strands.executor = executor_runner_create(1, 16);
    strands_create(&strands.strand, 1, strands_count_notified);
    strands_numbered_init(&strands.tasks[0], &strands.seen, 0);
    fault_plan(FAULT_PTHREAD_CREATE, 0, 1, EAGAIN);
    ck_assert_int_eq(strands_submit(strands.strand, &strands.tasks[0].task), -EAGAIN);
    strands_destroy(strands.strand);
    before = strands_notified(); /* 1 if that took longer than the executor waits */
    PAUSE_MS(20);
    ck_assert_uint_eq(strands_notified(), before);
}

static void destroy_when_notified(void *cookie)
{
    strands_count_notified(cookie);
    strand_destroy(strands.strand);
}

TEST(end, strand_may_be_destroyed_in_its_notification)
{
    strands.executor = executor_runner_create(1, 100);
    executor_runner_block(strands.executor, &strands.block);
    strands_create(&strands.strand, 2, destroy_when_notified);
    strands_submit_numbered(0, 2);
    strands_numbered_init(&strands.tasks[2], &strands.seen, 2);
    ck_assert_int_eq(strands_submit(strands.strand, &strands.tasks[2].task), -EAGAIN);
    tasks_block_end(&strands.block);
    UNTIL(strands_notified() == 1);
    UNTIL(atomic_load(&strands.n_run) + atomic_load(&strands.n_dropped) == 2);
}

/*
 * The message finds no loop, on a thread of the executor; the strand is destroyed where there is
 * none either.
 */
TEST(end, a_strand_outlives_its_loop)
{
    strands.executor = executor_runner_create(1, 100);
    executor_runner_block(strands.executor, &strands.block);
    strands_create(&strands.strand, 2, strands_count_notified);
    strands_submit_numbered(0, 2);
    strands_numbered_init(&strands.tasks[2], &strands.seen, 2);
    ck_assert_int_eq(strands_submit(strands.strand, &strands.tasks[2].task), -EAGAIN);
    loop_runner_stop(strands.loop);
    tasks_block_end(&strands.block);
    UNTIL(atomic_load(&strands.n_run) == 2);
    strand_destroy(strands.strand);
    ck_assert_uint_eq(atomic_load(&strands.n_notified), 0);
}

TEST(end, stopped_executor_runs_the_tasks_of_strands_within_the_timeout)
{
    strands.executor = executor_runner_create(2, 1000);
    executor_runner_block(strands.executor, &strands.block);
    strands_create(&strands.strand, MAX_TASKS, strands_count_notified);
    strands_submit_numbered(0, MAX_TASKS); /* more than a batch */
    executor_stop(strands.executor, UNTIL_LIMIT_NS);
    tasks_block_end(&strands.block);
    executor_runner_end(strands.executor);
    ck_assert_uint_eq(atomic_load(&strands.n_run), MAX_TASKS);
    strands_destroy(strands.strand);
}

TEST(end, stop_with_timeout_0_drops_queued_tasks_of_running_and_waiting_strands)
{
    struct strand *other;
    struct record record = {0};
    pthread_barrier_t barrier;
    struct tasks_meeting meeting;

    pthread_barrier_init(&barrier, NULL, 2);
    tasks_meeting_init(&meeting, &barrier);
    strands.executor = executor_runner_create(1, 1000);
    strands_create(&strands.strand, 100, NULL);
    strands_create(&other, 100, NULL);
    ck_assert_int_eq(strands_submit(strands.strand, &meeting.timer.task), 0);
    UNTIL(executor_runner_stats(strands.executor).running_name);
    strands_submit_numbered(0, 10);
    for (unsigned i = 0; i < 5; i++) {
        strands_numbered_init(&strands.tasks[100 + i], &record, i);
        ck_assert_int_eq(strands_submit(other, &strands.tasks[100 + i].task), 0);
    }
    executor_stop(strands.executor, 0);
    ck_assert_uint_eq(atomic_load(&strands.n_dropped), 15);
    ck_assert_uint_eq(executor_runner_stats(strands.executor).tasks_pending, 0);
    ck_assert_int_eq(strands_submit(strands.strand, &strands.tasks[0].task), -ESHUTDOWN);
    pthread_barrier_wait(&barrier);
    executor_runner_end(strands.executor);
    strands_destroy(strands.strand);
    strands_destroy(other);
}

/* -EAGAIN would promise capacity that never comes. */
TEST(end, full_strand_of_a_stopping_executor_returns_eshutdown)
{
    strands.executor = executor_runner_create(1, 16);
    executor_runner_block(strands.executor, &strands.block);
    strands_create(&strands.strand, 1, strands_count_notified);
    strands_submit_numbered(0, 1);
    executor_stop(strands.executor, UNTIL_LIMIT_NS);
    strands_numbered_init(&strands.tasks[1], &strands.seen, 1);
    ck_assert_int_eq(strands_submit(strands.strand, &strands.tasks[1].task), -ESHUTDOWN);
    tasks_block_end(&strands.block);
    executor_runner_end(strands.executor);
    ck_assert_uint_eq(strands_notified(), 0);
    strands_destroy(strands.strand);
}

TEST(end, strand_waiting_for_capacity_is_notified_of_the_stop)
{
    strands.executor = executor_runner_create(1, 16);
    executor_runner_block(strands.executor, &strands.block);
    strands_create(&strands.strand, 1, strands_count_notified);
    strands_fill_executor();
    strands_numbered_init(&strands.tasks[0], &strands.seen, 0);
    ck_assert_int_eq(strands_submit(strands.strand, &strands.tasks[0].task), -EAGAIN);
    executor_stop(strands.executor, UNTIL_LIMIT_NS);
    UNTIL(strands_notified() == 1);
    ck_assert_int_eq(strands_submit(strands.strand, &strands.tasks[0].task), -ESHUTDOWN);
    ck_assert_uint_eq(strands_notified(), 1);
    tasks_block_end(&strands.block);
    strands_destroy(strands.strand);
}

TEST(end, full_strand_is_notified_when_its_tasks_are_dropped)
{
    strands.executor = executor_runner_create(1, 100);
    executor_runner_block(strands.executor, &strands.block);
    strands_create(&strands.strand, 2, strands_count_notified);
    strands_submit_numbered(0, 2);
    strands_numbered_init(&strands.tasks[2], &strands.seen, 2);
    ck_assert_int_eq(strands_submit(strands.strand, &strands.tasks[2].task), -EAGAIN);
    executor_stop(strands.executor, 0);
    UNTIL(strands_notified() == 1);
    tasks_block_end(&strands.block);
    strands_destroy(strands.strand);
}

TEST_ABORTS(end, submitting_on_another_thread_than_the_loops_is_a_bug)
{
    strands.executor = executor_runner_create(1, 100);
    strands_create(&strands.strand, 2, strands_count_notified);
    strands_numbered_init(&strands.tasks[0], &strands.seen, 0);
    ck_assert_int_eq(strand_submit(strands.strand, &strands.tasks[0].task), 0);
}

/* ---- races ---- */

#define RACE_TASKS   6
#define RACE_SERIALS 3

struct race {
    struct strand *strands[RACE_SERIALS];
    struct record logs[RACE_SERIALS];
    struct numbered tasks[RACE_SERIALS][RACE_TASKS];
    unsigned n_accepted;
};

static void race_notified(void *cookie)
{
    ck_assert_uint_eq(*(unsigned *)cookie, 0); /* it was destroyed */
}

static unsigned gone[RACE_SERIALS];

static void race_submit(void *arg)
{
    struct race *r = arg;

    for (unsigned i = 0; i < RACE_SERIALS; i++) {
        struct strand_conf conf = {.executor = strands.executor,
                                   .loop = strands.loop,
                                   .max_pending_tasks = 2 + i,
                                   .on_capacity = race_notified,
                                   .cookie = &gone[i]};
        unsigned accepted = 0;

        gone[i] = 0;
        ck_assert_int_eq(strand_create(&r->strands[i], &conf), 0);
        for (unsigned j = 0; j < RACE_TASKS; j++) {
            strands_numbered_init(&r->tasks[i][j], &r->logs[i], accepted);
            accepted += strand_submit(r->strands[i], &r->tasks[i][j].task) == 0;
        }
        r->n_accepted += accepted;
    }
}

static void race_destroy(void *arg)
{
    struct race *r = arg;

    for (unsigned i = 0; i < RACE_SERIALS; i++) {
        strand_destroy(r->strands[i]);
        gone[i] = 1;
    }
}

static void spin(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        atomic_load(&strands.n_run); /* another moment in each round */
}

static void check_race(const struct race *r)
{
    ck_assert_uint_eq(atomic_load(&strands.n_run) + atomic_load(&strands.n_dropped), r->n_accepted);
    atomic_store(&strands.n_run, 0);
    atomic_store(&strands.n_dropped, 0);
}

GROUP(races, strands_setup, strands_teardown);

TEST(races, destroying_running_strands_loses_no_task)
{
    strands.executor = executor_runner_create(3, 10000);
    EACH_ROUND(round, RACES)
    {
        struct race r = {0};

        loop_runner_call(strands.loop, race_submit, &r);
        spin(round % 200 * 10);
        loop_runner_call(strands.loop, race_destroy, &r);
        UNTIL(atomic_load(&strands.n_run) + atomic_load(&strands.n_dropped) == r.n_accepted);
        check_race(&r);
    }
}

TEST(races, stopping_the_executor_of_running_strands_loses_no_task)
{
    strands.executor = NULL;
    EACH_ROUND(round, RACES)
    {
        struct race r = {0};

        strands.executor = executor_runner_create(1 + round % 3, 16);
        loop_runner_call(strands.loop, race_submit, &r);
        spin(round % 200 * 10);
        executor_stop(strands.executor, round % 3 * 10 * NS_PER_US);
        if (round % 2)
            loop_runner_call(strands.loop, race_destroy, &r);
        ck_assert_int_eq(executor_join(strands.executor, UNTIL_LIMIT_NS), 0);
        check_race(&r);
        if (round % 2 == 0)
            loop_runner_call(strands.loop, race_destroy, &r);
        executor_destroy(strands.executor);
    }
    strands.executor = executor_runner_create(1, 16); /* for the teardown */
}

TEST(races, ending_the_loop_of_running_strands_loses_no_task)
{
    strands.executor = executor_runner_create(2, 10000);
    loop_runner_destroy(strands.loop);
    EACH_ROUND(round, RACES / 4)
    {
        struct race r = {0};

        strands.loop = loop_runner_create();
        loop_runner_call(strands.loop, race_submit, &r);
        spin(round % 200 * 10);
        loop_stop(strands.loop, 0, 0);
        loop_runner_join(strands.loop);
        race_destroy(&r);
        UNTIL(atomic_load(&strands.n_run) + atomic_load(&strands.n_dropped) == r.n_accepted);
        check_race(&r);
        executor_runner_destroy(
            strands.executor); /* has the loop's address in its waiters until then */
        loop_destroy(strands.loop);
        strands.executor = executor_runner_create(2, 10000);
    }
    strands.loop = loop_runner_create();
}
