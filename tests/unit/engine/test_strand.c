/*
 * engine/strand: order without overlap on many threads, taking turns, the two bounds, and how it
 * ends.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include "engine/strand.h"
#include "support/executor_runner.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/rounds.h"
#include "support/sanitized.h"
#include "support/suite.h"
#include "support/until.h"

#define MESSAGES IF_SANITIZED(50000, 500000)
#define RACES    IF_SANITIZED(150, 1000)

#define MAX_TASKS 300

/* What the tasks of one strand find. Not atomic: only their order keeps them apart. */
struct record {
    unsigned next;
    unsigned inside;
    unsigned run_at_turn; /* how many had run when the task between them did */
};

struct numbered {
    struct task task;
    struct record *record;
    unsigned number;
    atomic_uint *run;
    atomic_uint *dropped;
    bool slow;
};

/* Another one's view of how far a strand has got. */
struct between {
    struct task task;
    struct record *record;
};

static struct loop *loop;
static struct executor *e;
static struct strand *strand;
static struct tasks_block block;
static struct record seen;
static struct numbered tasks[MAX_TASKS];
static struct tasks_counted direct[16]; /* submitted to the executor itself */
static atomic_uint n_run, n_dropped, n_notified;

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_NOTICE); /* a stop that cuts off is what some of these want */
    loop = loop_runner_create();
    seen = (struct record){0};
    atomic_store(&n_run, 0);
    atomic_store(&n_dropped, 0);
    atomic_store(&n_notified, 0);
}

static void teardown(void)
{
    executor_runner_destroy(e);
    loop_runner_destroy(loop);
    strand = NULL; /* one that was not freed is to be found as a leak */
}

/* Called a million times, and each ck_assert() is a system call. */
static void numbered_run(struct task *t)
{
    struct numbered *n = CONTAINER_OF(t, struct numbered, task);

    if (n->record->inside++ > 0)
        ck_abort_msg("two tasks at a time");
    if (n->record->next++ != n->number)
        ck_abort_msg("not in order");
    if (n->slow)
        PAUSE_MS(1);
    n->record->inside--;
    atomic_fetch_add(n->run, 1);
}

static void numbered_drop(struct task *t)
{
    atomic_fetch_add(CONTAINER_OF(t, struct numbered, task)->dropped, 1);
}

static void numbered_init(struct numbered *n, struct record *record, unsigned number)
{
    static const struct task_type type = {"numbered", numbered_run, numbered_drop};

    *n = (struct numbered){.task.type = &type,
                           .record = record,
                           .number = number,
                           .run = &n_run,
                           .dropped = &n_dropped};
}

static void between_run(struct task *t)
{
    struct record *record = CONTAINER_OF(t, struct between, task)->record;

    record->run_at_turn = record->next;
}

static const struct task_type between_type = {"between", between_run, tasks_never_dropped};

/* ---- doing things on the loop ---- */

static void count_notified(void *cookie)
{
    (void)cookie;
    ck_assert(loop_is_current(loop));
    atomic_fetch_add(&n_notified, 1);
}

struct creation {
    struct strand **out;
    unsigned max;
    void (*on_capacity)(void *cookie);
};

static void do_create(void *arg)
{
    struct creation *c = arg;
    struct strand_conf conf = {
        .executor = e, .loop = loop, .max_pending_tasks = c->max, .on_capacity = c->on_capacity};

    ck_assert_int_eq(strand_create(c->out, &conf), 0);
}

static void create(struct strand **out, unsigned max, void (*on_capacity)(void *cookie))
{
    struct creation c = {.out = out, .max = max, .on_capacity = on_capacity};

    loop_runner_call(loop, do_create, &c);
}

static void do_destroy(void *arg)
{
    strand_destroy(arg);
}

static void destroy(struct strand *s)
{
    loop_runner_call(loop, do_destroy, s);
}

struct submission {
    struct strand *s;
    struct task *t;
    int rc;
};

static void do_submit(void *arg)
{
    struct submission *sub = arg;

    sub->rc = strand_submit(sub->s, sub->t);
}

static int submit(struct strand *s, struct task *t)
{
    struct submission sub = {.s = s, .t = t};

    loop_runner_call(loop, do_submit, &sub);
    return sub.rc;
}

/* tasks[from] to tasks[to - 1], of one record. */
static void submit_numbered(unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        numbered_init(&tasks[i], &seen, i);
        ck_assert_int_eq(submit(strand, &tasks[i].task), 0);
    }
}

static void fill_executor(void)
{
    for (int i = 0; i < 16; i++) {
        tasks_counted_init(&direct[i]);
        ck_assert_int_eq(executor_submit(e, &direct[i].task), 0);
    }
}

/* ---- order ---- */

GROUP(order, setup, teardown);

TEST(order, tasks_keep_their_order_and_never_overlap_on_many_threads)
{
    e = executor_runner_create(4, 10000);
    create(&strand, MAX_TASKS, NULL);
    for (unsigned i = 0; i < MAX_TASKS; i++) {
        numbered_init(&tasks[i], &seen, i);
        tasks[i].slow = i % 10 == 0;
        ck_assert_int_eq(submit(strand, &tasks[i].task), 0);
    }
    UNTIL(atomic_load(&n_run) == MAX_TASKS);
    destroy(strand);
}

TEST(order, two_strands_run_at_the_same_time_on_two_threads)
{
    struct strand *other;
    pthread_barrier_t barrier;
    struct tasks_meeting a, b;

    pthread_barrier_init(&barrier, NULL, 2);
    tasks_meeting_init(&a, &barrier);
    tasks_meeting_init(&b, &barrier);
    e = executor_runner_create(2, 100);
    create(&strand, 10, NULL);
    create(&other, 10, NULL);
    ck_assert_int_eq(submit(strand, &a.timer.task), 0);
    ck_assert_int_eq(submit(other, &b.timer.task), 0);
    UNTIL(executor_runner_stats(e).tasks_run == 2);
    destroy(strand);
    destroy(other);
}

/* Netty pins a channel to one thread of the group, and who shares it waits. */
TEST(order, slow_strand_delays_no_other)
{
    struct strand *others[8];
    struct record logs[8] = {0};

    e = executor_runner_create(2, 10000);
    create(&strand, 10, NULL);
    executor_runner_block(e, &block); /* as a strand's task would: one of two threads is gone */
    for (unsigned i = 0; i < 8; i++) {
        create(&others[i], MAX_TASKS, NULL);
        for (unsigned j = 0; j < 20; j++) {
            numbered_init(&tasks[i * 20 + j], &logs[i], j);
            ck_assert_int_eq(submit(others[i], &tasks[i * 20 + j].task), 0);
        }
    }
    UNTIL(atomic_load(&n_run) == 160);
    tasks_block_end(&block);
    for (unsigned i = 0; i < 8; i++)
        destroy(others[i]);
    destroy(strand);
}

TEST(order, strand_yields_after_a_batch_and_continues_later)
{
    struct between between = {.task.type = &between_type, .record = &seen};

    e = executor_runner_create(1, 10000);
    executor_runner_block(e, &block);
    create(&strand, MAX_TASKS, NULL);
    submit_numbered(0, MAX_TASKS);
    ck_assert_int_eq(executor_submit(e, &between.task), 0);
    tasks_block_end(&block);
    UNTIL(atomic_load(&n_run) == MAX_TASKS);
    ck_assert_uint_eq(seen.run_at_turn, STRAND_BATCH);
    destroy(strand);
}

static void read_strand(void *arg)
{
    *(unsigned *)arg = atomic_load(&n_notified);
}

/* As far as the loop has got with what it was told before. */
static unsigned notified(void)
{
    unsigned n;

    loop_runner_call(loop, read_strand, &n);
    return n;
}

/* ---- bounds ---- */

GROUP(bounds, setup, teardown);

TEST(bounds, full_strand_refuses_and_notifies_once_when_half_of_it_is_free)
{
    e = executor_runner_create(1, 10000);
    executor_runner_block(e, &block);
    create(&strand, 4, count_notified);
    submit_numbered(0, 4);
    numbered_init(&tasks[4], &seen, 4);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(submit(strand, &tasks[4].task), -EAGAIN);
    PAUSE_MS(10);
    ck_assert_uint_eq(notified(), 0);
    tasks_block_end(&block);
    UNTIL(notified() == 1);
    ck_assert_int_eq(submit(strand, &tasks[4].task), 0);
    UNTIL(atomic_load(&n_run) == 5);
    ck_assert_uint_eq(notified(), 1);
    destroy(strand);
}

TEST(bounds, bound_of_the_executor_applies_to_the_tasks_of_all_strands)
{
    struct tasks_counted plain;

    e = executor_runner_create(1, 16);
    executor_runner_block(e, &block);
    create(&strand, 100, count_notified);
    submit_numbered(0, 16);
    ck_assert_uint_eq(executor_runner_stats(e).tasks_pending, 16);
    tasks_counted_init(&plain);
    ck_assert_int_eq(executor_submit(e, &plain.task), -EAGAIN);
    numbered_init(&tasks[16], &seen, 16);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(submit(strand, &tasks[16].task), -EAGAIN);
    ck_assert_uint_eq(executor_runner_stats(e).tasks_rejected, 4);
    PAUSE_MS(10);
    ck_assert_uint_eq(notified(), 0);
    tasks_block_end(&block);
    UNTIL(notified() == 1);
    UNTIL(executor_runner_stats(e).tasks_pending == 0);
    PAUSE_MS(10);
    ck_assert_uint_eq(notified(), 1);
    destroy(strand);
}

TEST(bounds, empty_strand_refused_by_a_full_executor_is_notified_of_capacity)
{
    e = executor_runner_create(1, 16);
    executor_runner_block(e, &block);
    create(&strand, 1, count_notified);
    fill_executor();
    numbered_init(&tasks[0], &seen, 0);
    ck_assert_int_eq(submit(strand, &tasks[0].task), -EAGAIN);
    tasks_block_end(&block);
    UNTIL(notified() == 1);
    ck_assert_int_eq(submit(strand, &tasks[0].task), 0);
    UNTIL(atomic_load(&n_run) == 1);
    destroy(strand);
}

TEST(bounds, strand_refused_for_lack_of_a_thread_is_notified_of_capacity)
{
    e = executor_runner_create(1, 16);
    create(&strand, 1, count_notified);
    numbered_init(&tasks[0], &seen, 0);
    fault_plan(FAULT_PTHREAD_CREATE, 0, 1, EAGAIN);
    ck_assert_int_eq(submit(strand, &tasks[0].task), -EAGAIN);
    UNTIL(notified() == 1);
    ck_assert_int_eq(submit(strand, &tasks[0].task), 0);
    UNTIL(atomic_load(&n_run) == 1);
    destroy(strand);
}

/* A producer that goes on whenever it may. */
static struct numbered *messages;
static unsigned n_sent, n_refusals, n_told;

static void pump(void *cookie)
{
    (void)cookie;
    n_told++;
    while (n_sent < MESSAGES) {
        int rc = strand_submit(strand, &messages[n_sent].task);

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
        numbered_init(&messages[i], &seen, i);
    n_sent = n_refusals = n_told = 0;
    e = executor_runner_create(3, max_of_executor);
    create(&strand, max, pump);
    loop_runner_call(loop, pump, NULL);
    while (atomic_load(&n_run) < MESSAGES) {
        unsigned run = atomic_load(&n_run);

        UNTIL(atomic_load(&n_run) > run ||
              run == MESSAGES); /* they may take longer, all together */
    }
    loop_runner_call(loop, check_pump, NULL);
    destroy(strand);
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
    e = executor_runner_create(1, 100);
    create(&strand, 10, NULL);
    ck_assert_int_eq(submit(strand, &meeting.timer.task), 0);
    submit_numbered(0, 1);
    PAUSE_MS(20);
    UNTIL(executor_runner_stats(e).running_name);
    stats = executor_runner_stats(e);
    ck_assert_str_eq(stats.running_name, "meeting");
    ck_assert_uint_eq(stats.tasks_pending, 1);
    ck_assert_int_ge(stats.oldest_ns, 20 * NS_PER_MS);
    pthread_barrier_wait(&barrier);
    UNTIL(atomic_load(&n_run) == 1);
    UNTIL(executor_runner_stats(e).tasks_run == 2);
    ck_assert_str_eq(executor_runner_stats(e).longest_name, "meeting");
    destroy(strand);
}

/* ---- its end ---- */

GROUP(end, setup, teardown);

TEST(end, destroying_drops_queued_tasks)
{
    e = executor_runner_create(1, 100);
    executor_runner_block(e, &block);
    create(&strand, 20, count_notified);
    submit_numbered(0, 20);
    destroy(strand); /* its place is still queued */
    ck_assert_uint_eq(atomic_load(&n_dropped), 20);
    ck_assert_uint_eq(executor_runner_stats(e).tasks_pending, 0);
    ck_assert_uint_eq(executor_runner_stats(e).tasks_dropped, 20);
    ck_assert_int_eq(executor_runner_stats(e).oldest_ns, 0);
    tasks_block_end(&block);
    UNTIL(executor_runner_stats(e).tasks_run == 1); /* the block */
    PAUSE_MS(10);
    ck_assert_uint_eq(atomic_load(&n_run), 0);
    ck_assert_uint_eq(executor_runner_stats(e).tasks_run, 1);
}

TEST(end, destroying_lets_the_running_task_finish)
{
    pthread_barrier_t barrier;
    struct tasks_meeting meeting;

    pthread_barrier_init(&barrier, NULL, 2);
    tasks_meeting_init(&meeting, &barrier);
    e = executor_runner_create(1, 100);
    create(&strand, 20, count_notified);
    ck_assert_int_eq(submit(strand, &meeting.timer.task), 0);
    UNTIL(executor_runner_stats(e).running_name);
    submit_numbered(0, 10);
    destroy(strand);
    ck_assert_uint_eq(atomic_load(&n_dropped), 10);
    pthread_barrier_wait(&barrier);
    UNTIL(executor_runner_stats(e).tasks_run == 1);
    ck_assert_uint_eq(atomic_load(&n_run), 0);
}

/* On the loop: make the notification come, and destroy the strand before the loop gets to it. */
static void refuse_and_destroy(void *arg)
{
    int rc;

    (void)arg;
    do {
        rc = strand_submit(strand, &tasks[0].task);
        ck_assert(rc == 0 || rc == -EAGAIN);
    } while (rc == 0);
    tasks_block_end(&block);
    while (executor_runner_stats(e).tasks_pending > 0)
        sched_yield();
    strand_destroy(strand);
}

TEST(end, destroyed_strand_gets_no_notification_that_was_on_its_way)
{
    e = executor_runner_create(1, 100);
    executor_runner_block(e, &block);
    create(&strand, 1, count_notified);
    numbered_init(&tasks[0], &seen, 0);
    loop_runner_call(loop, refuse_and_destroy, NULL);
    PAUSE_MS(10);
    ck_assert_uint_eq(notified(), 0);
    ck_assert_uint_eq(atomic_load(&n_run) + atomic_load(&n_dropped), 1);
}

TEST(end, destroyed_strand_gets_no_later_notification_of_the_executor)
{
    e = executor_runner_create(1, 16);
    executor_runner_block(e, &block);
    create(&strand, 1, count_notified);
    fill_executor();
    numbered_init(&tasks[0], &seen, 0);
    ck_assert_int_eq(submit(strand, &tasks[0].task), -EAGAIN); /* waits for the executor */
    destroy(strand);
    tasks_block_end(&block);
    UNTIL(executor_runner_stats(e).tasks_pending == 0);
    PAUSE_MS(10);
    ck_assert_uint_eq(notified(), 0);
}

TEST(end, destroyed_strand_gets_no_notification_after_a_failed_thread_start)
{
    unsigned before;

    e = executor_runner_create(1, 16);
    create(&strand, 1, count_notified);
    numbered_init(&tasks[0], &seen, 0);
    fault_plan(FAULT_PTHREAD_CREATE, 0, 1, EAGAIN);
    ck_assert_int_eq(submit(strand, &tasks[0].task), -EAGAIN);
    destroy(strand);
    before = notified(); /* 1 if that took longer than the executor waits */
    PAUSE_MS(20);
    ck_assert_uint_eq(notified(), before);
}

static void destroy_when_notified(void *cookie)
{
    count_notified(cookie);
    strand_destroy(strand);
}

TEST(end, strand_may_be_destroyed_in_its_notification)
{
    e = executor_runner_create(1, 100);
    executor_runner_block(e, &block);
    create(&strand, 2, destroy_when_notified);
    submit_numbered(0, 2);
    numbered_init(&tasks[2], &seen, 2);
    ck_assert_int_eq(submit(strand, &tasks[2].task), -EAGAIN);
    tasks_block_end(&block);
    UNTIL(notified() == 1);
    UNTIL(atomic_load(&n_run) + atomic_load(&n_dropped) == 2);
}

/*
 * The message finds no loop, on a thread of the executor; the strand is destroyed where there is
 * none either.
 */
TEST(end, a_strand_outlives_its_loop)
{
    e = executor_runner_create(1, 100);
    executor_runner_block(e, &block);
    create(&strand, 2, count_notified);
    submit_numbered(0, 2);
    numbered_init(&tasks[2], &seen, 2);
    ck_assert_int_eq(submit(strand, &tasks[2].task), -EAGAIN);
    loop_runner_stop(loop);
    tasks_block_end(&block);
    UNTIL(atomic_load(&n_run) == 2);
    strand_destroy(strand);
    ck_assert_uint_eq(atomic_load(&n_notified), 0);
}

TEST(end, stopped_executor_runs_the_tasks_of_strands_within_the_timeout)
{
    e = executor_runner_create(2, 1000);
    executor_runner_block(e, &block);
    create(&strand, MAX_TASKS, count_notified);
    submit_numbered(0, MAX_TASKS); /* more than a batch */
    executor_stop(e, UNTIL_LIMIT_NS);
    tasks_block_end(&block);
    executor_runner_end(e);
    ck_assert_uint_eq(atomic_load(&n_run), MAX_TASKS);
    destroy(strand);
}

TEST(end, stop_with_timeout_0_drops_queued_tasks_of_running_and_waiting_strands)
{
    struct strand *other;
    struct record record = {0};
    pthread_barrier_t barrier;
    struct tasks_meeting meeting;

    pthread_barrier_init(&barrier, NULL, 2);
    tasks_meeting_init(&meeting, &barrier);
    e = executor_runner_create(1, 1000);
    create(&strand, 100, NULL);
    create(&other, 100, NULL);
    ck_assert_int_eq(submit(strand, &meeting.timer.task), 0);
    UNTIL(executor_runner_stats(e).running_name);
    submit_numbered(0, 10);
    for (unsigned i = 0; i < 5; i++) {
        numbered_init(&tasks[100 + i], &record, i);
        ck_assert_int_eq(submit(other, &tasks[100 + i].task), 0);
    }
    executor_stop(e, 0);
    ck_assert_uint_eq(atomic_load(&n_dropped), 15);
    ck_assert_uint_eq(executor_runner_stats(e).tasks_pending, 0);
    ck_assert_int_eq(submit(strand, &tasks[0].task), -ESHUTDOWN);
    pthread_barrier_wait(&barrier);
    executor_runner_end(e);
    destroy(strand);
    destroy(other);
}

/* -EAGAIN would promise capacity that never comes. */
TEST(end, full_strand_of_a_stopping_executor_returns_eshutdown)
{
    e = executor_runner_create(1, 16);
    executor_runner_block(e, &block);
    create(&strand, 1, count_notified);
    submit_numbered(0, 1);
    executor_stop(e, UNTIL_LIMIT_NS);
    numbered_init(&tasks[1], &seen, 1);
    ck_assert_int_eq(submit(strand, &tasks[1].task), -ESHUTDOWN);
    tasks_block_end(&block);
    executor_runner_end(e);
    ck_assert_uint_eq(notified(), 0);
    destroy(strand);
}

TEST(end, strand_waiting_for_capacity_is_notified_of_the_stop)
{
    e = executor_runner_create(1, 16);
    executor_runner_block(e, &block);
    create(&strand, 1, count_notified);
    fill_executor();
    numbered_init(&tasks[0], &seen, 0);
    ck_assert_int_eq(submit(strand, &tasks[0].task), -EAGAIN);
    executor_stop(e, UNTIL_LIMIT_NS);
    UNTIL(notified() == 1);
    ck_assert_int_eq(submit(strand, &tasks[0].task), -ESHUTDOWN);
    ck_assert_uint_eq(notified(), 1);
    tasks_block_end(&block);
    destroy(strand);
}

TEST(end, full_strand_is_notified_when_its_tasks_are_dropped)
{
    e = executor_runner_create(1, 100);
    executor_runner_block(e, &block);
    create(&strand, 2, count_notified);
    submit_numbered(0, 2);
    numbered_init(&tasks[2], &seen, 2);
    ck_assert_int_eq(submit(strand, &tasks[2].task), -EAGAIN);
    executor_stop(e, 0);
    UNTIL(notified() == 1);
    tasks_block_end(&block);
    destroy(strand);
}

TEST_ABORTS(end, submitting_on_another_thread_than_the_loops_is_a_bug)
{
    e = executor_runner_create(1, 100);
    create(&strand, 2, count_notified);
    numbered_init(&tasks[0], &seen, 0);
    ck_assert_int_eq(strand_submit(strand, &tasks[0].task), 0);
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
        struct strand_conf conf = {.executor = e,
                                   .loop = loop,
                                   .max_pending_tasks = 2 + i,
                                   .on_capacity = race_notified,
                                   .cookie = &gone[i]};
        unsigned accepted = 0;

        gone[i] = 0;
        ck_assert_int_eq(strand_create(&r->strands[i], &conf), 0);
        for (unsigned j = 0; j < RACE_TASKS; j++) {
            numbered_init(&r->tasks[i][j], &r->logs[i], accepted);
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
        atomic_load(&n_run); /* another moment in each round */
}

static void check_race(const struct race *r)
{
    ck_assert_uint_eq(atomic_load(&n_run) + atomic_load(&n_dropped), r->n_accepted);
    atomic_store(&n_run, 0);
    atomic_store(&n_dropped, 0);
}

GROUP(races, setup, teardown);

TEST(races, destroying_running_strands_loses_no_task)
{
    e = executor_runner_create(3, 10000);
    EACH_ROUND(round, RACES)
    {
        struct race r = {0};

        loop_runner_call(loop, race_submit, &r);
        spin(round % 200 * 10);
        loop_runner_call(loop, race_destroy, &r);
        UNTIL(atomic_load(&n_run) + atomic_load(&n_dropped) == r.n_accepted);
        check_race(&r);
    }
}

TEST(races, stopping_the_executor_of_running_strands_loses_no_task)
{
    e = NULL;
    EACH_ROUND(round, RACES)
    {
        struct race r = {0};

        e = executor_runner_create(1 + round % 3, 16);
        loop_runner_call(loop, race_submit, &r);
        spin(round % 200 * 10);
        executor_stop(e, round % 3 * 10 * NS_PER_US);
        if (round % 2)
            loop_runner_call(loop, race_destroy, &r);
        ck_assert_int_eq(executor_join(e, UNTIL_LIMIT_NS), 0);
        check_race(&r);
        if (round % 2 == 0)
            loop_runner_call(loop, race_destroy, &r);
        executor_destroy(e);
    }
    e = executor_runner_create(1, 16); /* for the teardown */
}

TEST(races, ending_the_loop_of_running_strands_loses_no_task)
{
    e = executor_runner_create(2, 10000);
    loop_runner_destroy(loop);
    EACH_ROUND(round, RACES / 4)
    {
        struct race r = {0};

        loop = loop_runner_create();
        loop_runner_call(loop, race_submit, &r);
        spin(round % 200 * 10);
        loop_stop(loop, 0, 0);
        loop_runner_join(loop);
        race_destroy(&r);
        UNTIL(atomic_load(&n_run) + atomic_load(&n_dropped) == r.n_accepted);
        check_race(&r);
        executor_runner_destroy(e); /* has the loop's address in its waiters until then */
        loop_destroy(loop);
        e = executor_runner_create(2, 10000);
    }
    loop = loop_runner_create();
}
