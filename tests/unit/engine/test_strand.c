/*
 * engine/strand: order without overlap on many threads, taking turns, and the two bounds.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "engine/strand.h"
#include "support/executor_runner.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/sanitized.h"
#include "support/strands.h"
#include "support/suite.h"
#include "support/until.h"

#define MESSAGES IF_SANITIZED(50000, 500000)

/* Another one's view of how far a strand has got. */
struct between {
    struct task task;
    struct record *record;
};

static void between_run(struct task *t)
{
    struct record *record = CONTAINER_OF(t, struct between, task)->record;

    record->run_at_turn = record->next;
}

static const struct task_type between_type = {"between", between_run, tasks_never_dropped};

/* ---- order ---- */

GROUP(order, strands_setup, strands_teardown);

TEST(order, tasks_keep_their_order_and_never_overlap_on_many_threads)
{
    strands.executor = executor_runner_create(4, 10000);
    strands_create(&strands.strand, MAX_TASKS, NULL);
    for (unsigned i = 0; i < MAX_TASKS; i++) {
        strands_numbered_init(&strands.tasks[i], &strands.seen, i);
        strands.tasks[i].slow = i % 10 == 0;
        ck_assert_int_eq(strands_submit(strands.strand, &strands.tasks[i].task), 0);
    }
    UNTIL(atomic_load(&strands.n_run) == MAX_TASKS);
    strands_destroy(strands.strand);
}

TEST(order, two_strands_run_at_the_same_time_on_two_threads)
{
    struct strand *other;
    pthread_barrier_t barrier;
    struct tasks_meeting a, b;

    pthread_barrier_init(&barrier, NULL, 2);
    tasks_meeting_init(&a, &barrier);
    tasks_meeting_init(&b, &barrier);
    strands.executor = executor_runner_create(2, 100);
    strands_create(&strands.strand, 10, NULL);
    strands_create(&other, 10, NULL);
    ck_assert_int_eq(strands_submit(strands.strand, &a.timer.task), 0);
    ck_assert_int_eq(strands_submit(other, &b.timer.task), 0);
    UNTIL(executor_runner_stats(strands.executor).tasks_run == 2);
    strands_destroy(strands.strand);
    strands_destroy(other);
}

/* Netty pins a channel to one thread of the group, and who shares it waits. */
TEST(order, slow_strand_delays_no_other)
{
    struct strand *others[8];
    struct record logs[8] = {0};

    strands.executor = executor_runner_create(2, 10000);
    strands_create(&strands.strand, 10, NULL);
    /* as a strand's task would: one of two threads is gone */
    executor_runner_block(strands.executor, &strands.block);
    for (unsigned i = 0; i < 8; i++) {
        strands_create(&others[i], MAX_TASKS, NULL);
        for (unsigned j = 0; j < 20; j++) {
            strands_numbered_init(&strands.tasks[i * 20 + j], &logs[i], j);
            ck_assert_int_eq(strands_submit(others[i], &strands.tasks[i * 20 + j].task), 0);
        }
    }
    UNTIL(atomic_load(&strands.n_run) == 160);
    tasks_block_end(&strands.block);
    for (unsigned i = 0; i < 8; i++)
        strands_destroy(others[i]);
    strands_destroy(strands.strand);
}

TEST(order, strand_yields_after_a_batch_and_continues_later)
{
    struct between between = {.task.type = &between_type, .record = &strands.seen};

    strands.executor = executor_runner_create(1, 10000);
    executor_runner_block(strands.executor, &strands.block);
    strands_create(&strands.strand, MAX_TASKS, NULL);
    strands_submit_numbered(0, MAX_TASKS);
    ck_assert_int_eq(executor_submit(strands.executor, &between.task), 0);
    tasks_block_end(&strands.block);
    UNTIL(atomic_load(&strands.n_run) == MAX_TASKS);
    ck_assert_uint_eq(strands.seen.run_at_turn, STRAND_BATCH);
    strands_destroy(strands.strand);
}

/* ---- bounds ---- */

GROUP(bounds, strands_setup, strands_teardown);

TEST(bounds, full_strand_refuses_and_notifies_once_when_half_of_it_is_free)
{
    strands.executor = executor_runner_create(1, 10000);
    executor_runner_block(strands.executor, &strands.block);
    strands_create(&strands.strand, 4, strands_count_notified);
    strands_submit_numbered(0, 4);
    strands_numbered_init(&strands.tasks[4], &strands.seen, 4);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(strands_submit(strands.strand, &strands.tasks[4].task), -EAGAIN);
    PAUSE_MS(10);
    ck_assert_uint_eq(strands_notified(), 0);
    tasks_block_end(&strands.block);
    UNTIL(strands_notified() == 1);
    ck_assert_int_eq(strands_submit(strands.strand, &strands.tasks[4].task), 0);
    UNTIL(atomic_load(&strands.n_run) == 5);
    ck_assert_uint_eq(strands_notified(), 1);
    strands_destroy(strands.strand);
}

TEST(bounds, bound_of_the_executor_applies_to_the_tasks_of_all_strands)
{
    struct tasks_counted plain;

    strands.executor = executor_runner_create(1, 16);
    executor_runner_block(strands.executor, &strands.block);
    strands_create(&strands.strand, 100, strands_count_notified);
    strands_submit_numbered(0, 16);
    ck_assert_uint_eq(executor_runner_stats(strands.executor).tasks_pending, 16);
    tasks_counted_init(&plain);
    ck_assert_int_eq(executor_submit(strands.executor, &plain.task), -EAGAIN);
    strands_numbered_init(&strands.tasks[16], &strands.seen, 16);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(strands_submit(strands.strand, &strands.tasks[16].task), -EAGAIN);
    ck_assert_uint_eq(executor_runner_stats(strands.executor).tasks_rejected, 4);
    PAUSE_MS(10);
    ck_assert_uint_eq(strands_notified(), 0);
    tasks_block_end(&strands.block);
    UNTIL(strands_notified() == 1);
    UNTIL(executor_runner_stats(strands.executor).tasks_pending == 0);
    PAUSE_MS(10);
    ck_assert_uint_eq(strands_notified(), 1);
    strands_destroy(strands.strand);
}

TEST(bounds, empty_strand_refused_by_a_full_executor_is_notified_of_capacity)
{
    strands.executor = executor_runner_create(1, 16);
    executor_runner_block(strands.executor, &strands.block);
    strands_create(&strands.strand, 1, strands_count_notified);
    strands_fill_executor();
    strands_numbered_init(&strands.tasks[0], &strands.seen, 0);
    ck_assert_int_eq(strands_submit(strands.strand, &strands.tasks[0].task), -EAGAIN);
    tasks_block_end(&strands.block);
    UNTIL(strands_notified() == 1);
    ck_assert_int_eq(strands_submit(strands.strand, &strands.tasks[0].task), 0);
    UNTIL(atomic_load(&strands.n_run) == 1);
    strands_destroy(strands.strand);
}

TEST(bounds, strand_refused_for_lack_of_a_thread_is_notified_of_capacity)
{
    strands.executor = executor_runner_create(1, 16);
    strands_create(&strands.strand, 1, strands_count_notified);
    strands_numbered_init(&strands.tasks[0], &strands.seen, 0);
    fault_plan(FAULT_PTHREAD_CREATE, 0, 1, EAGAIN);
    ck_assert_int_eq(strands_submit(strands.strand, &strands.tasks[0].task), -EAGAIN);
    UNTIL(strands_notified() == 1);
    ck_assert_int_eq(strands_submit(strands.strand, &strands.tasks[0].task), 0);
    UNTIL(atomic_load(&strands.n_run) == 1);
    strands_destroy(strands.strand);
}

/* A producer that goes on whenever it may. */
static struct numbered *messages;
static unsigned n_sent, n_refusals, n_told;

static void pump(void *cookie)
{
    (void)cookie;
    n_told++;
    while (n_sent < MESSAGES) {
        int rc = strand_submit(strands.strand, &messages[n_sent].task);

        if (rc == -EAGAIN) {
            n_refusals++;
            return;
        }
        if (rc != 0)
            ck_abort_msg("refused: %d", rc);
        n_sent++;
    }
}

static void check_pump(void *arg)
{
    (void)arg;
    ck_assert_uint_eq(n_sent, MESSAGES);
    ck_assert_uint_gt(n_refusals, 0);
    ck_assert_uint_eq(n_told, n_refusals + 1); /* the first was the start */
}

static void pump_all(unsigned max, unsigned max_of_executor)
{
    messages = calloc(MESSAGES, sizeof(*messages));
    ck_assert_ptr_nonnull(messages);
    for (unsigned i = 0; i < MESSAGES; i++)
        strands_numbered_init(&messages[i], &strands.seen, i);
    n_sent = n_refusals = n_told = 0;
    strands.executor = executor_runner_create(3, max_of_executor);
    strands_create(&strands.strand, max, pump);
    loop_runner_call(strands.loop, pump, NULL);
    while (atomic_load(&strands.n_run) < MESSAGES) {
        unsigned run = atomic_load(&strands.n_run);

        UNTIL(atomic_load(&strands.n_run) > run ||
              run == MESSAGES); /* they may take longer, all together */
    }
    loop_runner_call(strands.loop, check_pump, NULL);
    strands_destroy(strands.strand);
    free(messages);
}

TEST(bounds, many_tasks_through_a_small_strand_are_all_run_and_refusals_notified)
{
    pump_all(32, 10000);
}

TEST(bounds, many_tasks_through_a_small_executor_are_all_run_and_refusals_notified)
{
    pump_all(10000, 32);
}

/* ---- what the executor tells of it ---- */

TEST(order, executor_names_the_running_task_of_a_strand_and_the_wait_behind_it)
{
    struct executor_stats stats;
    pthread_barrier_t barrier;
    struct tasks_meeting meeting;

    pthread_barrier_init(&barrier, NULL, 2);
    tasks_meeting_init(&meeting, &barrier);
    strands.executor = executor_runner_create(1, 100);
    strands_create(&strands.strand, 10, NULL);
    ck_assert_int_eq(strands_submit(strands.strand, &meeting.timer.task), 0);
    strands_submit_numbered(0, 1);
    PAUSE_MS(20);
    UNTIL(executor_runner_stats(strands.executor).running_name);
    stats = executor_runner_stats(strands.executor);
    ck_assert_str_eq(stats.running_name, "meeting");
    ck_assert_uint_eq(stats.tasks_pending, 1);
    ck_assert_int_ge(stats.oldest_ns, 20 * NS_PER_MS);
    pthread_barrier_wait(&barrier);
    UNTIL(atomic_load(&strands.n_run) == 1);
    UNTIL(executor_runner_stats(strands.executor).tasks_run == 2);
    ck_assert_str_eq(executor_runner_stats(strands.executor).longest_name, "meeting");
    strands_destroy(strands.strand);
}
