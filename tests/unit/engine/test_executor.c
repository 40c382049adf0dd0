/*
 * engine/executor: threads by need, order, the bound and waiting for capacity, what it tells.
 * Timers and the end have their own files.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>

#include "support/executor_runner.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/suite.h"
#include "support/until.h"

#define MANY 40

/* Notes what its thread is called and where it may run. */
struct noted {
    struct task task;
    char name[16];
    cpu_set_t cpus;
    atomic_bool done;
};

/* Submits `then` as a continuation. */
struct continued {
    struct task task;
    struct executor *e;
    struct task *then;
    int result;
};

static struct executor *e;
static struct tasks_block block;
static struct tasks_counted tasks[MANY];

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_NOTICE);
    tasks_counted_init_all(tasks, MANY);
}

static void noted_run(struct task *t)
{
    struct noted *n = CONTAINER_OF(t, struct noted, task);

    prctl(PR_GET_NAME, n->name);
    sched_getaffinity(0, sizeof(n->cpus), &n->cpus);
    atomic_store(&n->done, true);
}

static void continued_run(struct task *t)
{
    struct continued *c = CONTAINER_OF(t, struct continued, task);

    c->result = executor_submit_more(c->e, c->then);
}

static const struct task_type noted_type = {"noted", noted_run, tasks_never_dropped};

static const struct task_type continued_type = {"continued", continued_run, tasks_never_dropped};

/* ---- threads ---- */

GROUP(threads, setup, NULL);

TEST(threads, unused_executor_has_no_thread)
{
    e = executor_runner_create(4, 100);
    ck_assert_uint_eq(executor_runner_stats(e).threads, 0);
    executor_destroy(e);
    executor_destroy(NULL);
}

TEST(threads, idle_thread_is_used_again)
{
    e = executor_runner_create(4, 100);
    for (unsigned i = 0; i < MANY; i++) {
        ck_assert_int_eq(executor_submit(e, &tasks[i].task), 0);
        UNTIL(executor_runner_stats(e).tasks_run == i + 1);
    }
    ck_assert_uint_eq(executor_runner_stats(e).threads, 1);
    executor_runner_destroy(e);
    ck_assert_uint_eq(tasks_counted_run(tasks, MANY), MANY);
}

TEST(threads, new_thread_starts_only_when_all_are_busy_and_up_to_the_limit)
{
    struct tasks_block blocks[3];

    e = executor_runner_create(3, 100);
    for (unsigned i = 0; i < 3; i++) {
        executor_runner_block(e, &blocks[i]);
        ck_assert_uint_eq(executor_runner_stats(e).threads, i + 1);
    }
    for (int i = 0; i < MANY; i++)
        ck_assert_int_eq(executor_submit(e, &tasks[i].task), 0);
    ck_assert_uint_eq(executor_runner_stats(e).threads, 3);
    ck_assert_uint_eq(executor_runner_stats(e).tasks_pending, MANY);
    for (unsigned i = 0; i < 3; i++)
        tasks_block_end(&blocks[i]);
    executor_runner_destroy(e);
    ck_assert_uint_eq(tasks_counted_run(tasks, MANY), MANY);
}

/* The second must not be left to the thread that was woken for the first. */
TEST(threads, two_tasks_submitted_together_do_not_wait_for_each_other)
{
    pthread_barrier_t barrier;
    struct tasks_meeting a, b;

    pthread_barrier_init(&barrier, NULL, 2);
    tasks_meeting_init(&a, &barrier);
    tasks_meeting_init(&b, &barrier);
    e = executor_runner_create(2, 100);
    for (unsigned i = 0; i < 300; i++) {
        ck_assert_int_eq(executor_submit(e, &a.timer.task), 0);
        ck_assert_int_eq(executor_submit(e, &b.timer.task), 0);
        UNTIL(executor_runner_stats(e).tasks_run == 2 * (i + 1));
    }
    executor_runner_destroy(e);
}

TEST(threads, threads_are_named_by_executor_pool_and_number)
{
    struct noted notes[2] = {{.task.type = &noted_type}, {.task.type = &noted_type}};
    struct executor_conf conf = {.name = "resolver", .pool = 7, .threads = 2};

    ck_assert_int_eq(executor_create(&e, &conf), 0);
    ck_assert_int_eq(executor_submit(e, &notes[0].task), 0);
    UNTIL(atomic_load(&notes[0].done));
    ck_assert_str_eq(notes[0].name, "resolver-7-1");
    executor_runner_block(e, &block);
    ck_assert_int_eq(executor_submit(e, &notes[1].task), 0);
    UNTIL(atomic_load(&notes[1].done)); /* the block has one of the two */
    ck_assert_int_eq(strncmp(notes[1].name, "resolver-7-", 11), 0);
    tasks_block_end(&block);
    executor_runner_destroy(e);
}

TEST(threads, a_long_name_is_cut_and_the_number_is_kept)
{
    struct noted note = {.task.type = &noted_type};
    struct executor_conf conf = {.name = "name-of-20-characters", .pool = 12, .threads = 1};

    ck_assert_int_eq(executor_create(&e, &conf), 0);
    ck_assert_int_eq(executor_submit(e, &note.task), 0);
    executor_runner_destroy(e);
    ck_assert_str_eq(note.name, "name-of-20-12-1");
}

static void *submit_bound_to_one(void *arg)
{
    cpu_set_t one, all;
    int cpu = 0;

    sched_getaffinity(0, sizeof(all), &all);
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
    ck_assert_int_eq(executor_submit(e, arg), 0);
    return NULL;
}

TEST(threads, thread_does_not_inherit_the_affinity_of_the_submitter)
{
    struct noted note = {.task.type = &noted_type};
    pthread_t bound;
    cpu_set_t mine;

    sched_getaffinity(0, sizeof(mine), &mine);
    e = executor_runner_create(1, 100);
    pthread_create(&bound, NULL, submit_bound_to_one, &note.task);
    pthread_join(bound, NULL);
    executor_runner_destroy(e);
    ck_assert(CPU_EQUAL(&note.cpus, &mine));
}

TEST(threads, task_for_which_no_thread_starts_stays_the_callers)
{
    e = executor_runner_create(2, 100);
    fault_plan(FAULT_PTHREAD_CREATE, 0, 1, EAGAIN);
    ck_assert_int_eq(executor_submit(e, &tasks[0].task), -EAGAIN);
    ck_assert_uint_eq(executor_runner_stats(e).tasks_pending, 0);
    ck_assert_int_eq(executor_submit(e, &tasks[0].task), 0); /* now it works */
    executor_runner_end(e);
    ck_assert_uint_eq(atomic_load(&tasks[0].run), 1);
    ck_assert_uint_eq(executor_runner_stats(e).tasks_rejected, 1);
    executor_destroy(e);
}

TEST(threads, a_second_thread_that_cannot_be_started_is_logged_once_and_tried_again_later)
{
    struct tasks_block second;

    e = executor_runner_create(2, 100);
    executor_runner_block(e, &block);
    fault_plan(FAULT_PTHREAD_CREATE, 0, FAULT_ALWAYS, EAGAIN);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(executor_submit(e, &tasks[i].task), 0);
        PAUSE_MS(12);
    }
    ck_assert_uint_ge(fault_calls(FAULT_PTHREAD_CREATE), 1 + 2);
    EXPECT_LOG_LINES("executor test: cannot start another thread: Resource", 1);
    fault_plan(FAULT_PTHREAD_CREATE, 0, 0, 0);
    PAUSE_MS(12);
    executor_runner_block(e, &second); /* the first is still busy */
    ck_assert_uint_eq(tasks_counted_run(tasks, 3), 3);
    tasks_block_end(&second);
    tasks_block_end(&block);
    executor_runner_destroy(e);
}

TEST(threads, failing_to_start_a_second_thread_is_not_repeated_all_the_time)
{
    unsigned before;
    int64_t began_at_ns;

    e = executor_runner_create(2, 100000);
    executor_runner_block(e, &block);
    fault_plan(FAULT_PTHREAD_CREATE, 0, FAULT_ALWAYS, EAGAIN);
    before = fault_calls(FAULT_PTHREAD_CREATE);
    began_at_ns = clock_now_ns();
    for (int i = 0; i < MANY; i++)
        ck_assert_int_eq(executor_submit(e, &tasks[i].task), 0);
    ck_assert_uint_le(fault_calls(FAULT_PTHREAD_CREATE) - before,
                      1 + (unsigned)since_ms(began_at_ns) / 10 + 1);
    fault_plan(FAULT_PTHREAD_CREATE, 0, 0, 0);
    tasks_block_end(&block);
    executor_runner_destroy(e);
}

/* ---- order and bound ---- */

GROUP(order_and_bound, setup, NULL);

TEST(order_and_bound, tasks_begin_in_the_order_of_submission)
{
    struct tasks_trace trace = {0};
    struct tasks_traced traced[26];

    e = executor_runner_create(1, 100);
    executor_runner_block(e, &block);
    for (int i = 0; i < 26; i++) {
        tasks_traced_init(&traced[i], &trace, (char)('a' + i));
        ck_assert_int_eq(executor_submit(e, &traced[i].task), 0);
    }
    tasks_block_end(&block);
    executor_runner_destroy(e);
    ck_assert_str_eq(trace.text, "abcdefghijklmnopqrstuvwxyz");
}

TEST(order_and_bound, slow_task_delays_its_own_thread_only)
{
    e = executor_runner_create(2, 100);
    executor_runner_block(e, &block);
    for (int i = 0; i < MANY; i++)
        ck_assert_int_eq(executor_submit(e, &tasks[i].task), 0);
    UNTIL(tasks_counted_run(tasks, MANY) == MANY);
    tasks_block_end(&block);
    executor_runner_destroy(e);
}

TEST(order_and_bound, full_executor_refuses_and_the_task_stays_the_callers)
{
    e = executor_runner_create(1, 20);
    executor_runner_block(e, &block);
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(executor_submit(e, &tasks[i].task), 0);
    ck_assert_int_eq(executor_submit(e, &tasks[20].task), -EAGAIN);
    ck_assert_uint_eq(executor_runner_stats(e).tasks_rejected, 1);
    ck_assert_uint_eq(executor_runner_stats(e).tasks_pending, 20);
    tasks_block_end(&block);
    executor_runner_destroy(e);
    ck_assert_uint_eq(tasks_counted_run(tasks, 20), 20);
    ck_assert_uint_eq(atomic_load(&tasks[20].run) + atomic_load(&tasks[20].dropped), 0);
}

TEST(order_and_bound, sixteen_is_the_smallest_bound)
{
    e = executor_runner_create(1, 1);
    executor_runner_block(e, &block);
    for (int i = 0; i < 16; i++)
        ck_assert_int_eq(executor_submit(e, &tasks[i].task), 0);
    ck_assert_int_eq(executor_submit(e, &tasks[16].task), -EAGAIN);
    tasks_block_end(&block);
    executor_runner_destroy(e);
}

TEST(order_and_bound, continuation_of_a_task_is_accepted_beyond_the_bound_and_queued_last)
{
    struct continued c = {.task.type = &continued_type, .then = &tasks[MANY - 1].task};

    c.e = e = executor_runner_create(1, 16);
    executor_runner_block(e, &block);
    ck_assert_int_eq(executor_submit(e, &c.task), 0);
    for (int i = 0; i < 15; i++)
        ck_assert_int_eq(executor_submit(e, &tasks[i].task), 0);
    ck_assert_int_eq(executor_submit(e, &tasks[15].task), -EAGAIN);
    tasks_block_end(&block);
    executor_runner_destroy(e);
    ck_assert_int_eq(c.result, 0);
    ck_assert_uint_eq(tasks_counted_run(tasks, 15), 15);
    ck_assert_uint_eq(atomic_load(&tasks[MANY - 1].run), 1);
}
