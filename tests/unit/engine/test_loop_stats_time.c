/* engine/loop_stats: what took longest, what a loop is at, and how it shares its time. */
#include <semaphore.h>

#include "support/bell.h"
#include "support/loop_runner.h"
#include "support/observe.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

#define MS(n) ((n)*NS_PER_MS)

static struct loop *loop;
static struct tasks_block block;

static struct loop *create(int64_t stall_threshold_ns)
{
    struct loop_conf conf = {.name = "test",
                             .budget = {.io_ratio = 70, .quantum_ns = MS(100)},
                             .max_pending_tasks = 65536,
                             .stall_threshold_ns = stall_threshold_ns};
    struct loop *l;

    ck_assert_int_eq(loop_create(&l, &conf), 0);
    return l;
}

static void setup(void)
{
    loop = create(0);
}

static void teardown(void)
{
    loop_runner_destroy(loop);
}

/* Keep the loop, but not the processor. */
static void take(int64_t ns)
{
    PAUSE_MS(ns / NS_PER_MS);
}

static const struct task_type quick_type = {"quick", tasks_timely_run, tasks_timely_drop};
static const struct task_type slow_type = {"slow", tasks_timely_run, tasks_timely_drop};
static const struct task_type slower_type = {"slower", tasks_timely_run, tasks_timely_drop};

/* ---- the longest ---- */

GROUP(times, setup, teardown);

TEST(times, the_longest_task_is_named)
{
    struct tasks_timely tasks[21];

    for (int i = 0; i < 21; i++) /* quick and slow ones in turn: each is told from its neighbour */
        tasks_timely_submit(&tasks[i], i % 2 ? &slow_type : &quick_type, loop, LOOP_TASKS,
                            i == 11 ? MS(150) : 0);
    UNTIL(observe_stats(loop).tasks_run == 21);
    ck_assert_str_eq(observe_stats(loop).longest_name, "slow");
    ck_assert_int_ge(observe_stats(loop).longest_ns, MS(150));
}

TEST(times, longer_task_becomes_the_longest_and_a_shorter_one_does_not)
{
    struct tasks_timely tasks[3];
    int64_t longest_ns;

    tasks_timely_submit(&tasks[0], &slow_type, loop, LOOP_TASKS, MS(20));
    observe_until_idle(loop);
    tasks_timely_submit(&tasks[1], &slower_type, loop, LOOP_TASKS,
                        observe_stats(loop).longest_ns + MS(300));
    observe_until_idle(loop);
    ck_assert_str_eq(observe_stats(loop).longest_name, "slower");
    longest_ns = observe_stats(loop).longest_ns;
    tasks_timely_submit(&tasks[2], &quick_type, loop, LOOP_TASKS, 0);
    observe_until_idle(loop);
    ck_assert_str_eq(observe_stats(loop).longest_name, "slower");
    ck_assert_int_eq(observe_stats(loop).longest_ns, longest_ns);
}

static struct timer slow_timer;
static struct tasks_timely slow_reaped = {.task.type = &slow_type, .ns = MS(150)};

static void timer_run(struct task *t)
{
    (void)t;
    take(MS(150));
}

static void schedule_slow(void *arg)
{
    static const struct task_type type = {
        .name = "slow timer", .run = timer_run, .drop = tasks_timely_drop};

    (void)arg;
    timer_init(&slow_timer, &type);
    loop_schedule(loop, &slow_timer, 0);
}

static void reap_slow(void *arg)
{
    (void)arg;
    loop_reap(loop, &slow_reaped.task);
}

TEST_EACH(times, longest_task_may_be_of_any_queue_a_timer_or_a_reaped_task, LOOP_TAIL + 3)
{
    struct tasks_timely task;

    if (_i < LOOP_TAIL + 1)
        tasks_timely_submit(&task, &slow_type, loop, (enum loop_queue)_i, MS(150));
    else
        loop_runner_call(loop, _i == LOOP_TAIL + 1 ? schedule_slow : reap_slow, NULL);
    UNTIL(observe_stats(loop).longest_ns >= MS(150));
    observe_until_idle(loop);
    ck_assert_str_eq(observe_stats(loop).longest_name, _i == LOOP_TAIL + 1 ? "slow timer" : "slow");
}

/* ---- what it is at ---- */

TEST(times, reader_during_a_task_sees_its_name_and_the_duration_of_the_turn)
{
    struct loop_stats first, second;

    tasks_block_begin(&block, loop);
    first = observe_stats(loop);
    PAUSE_MS(20);
    second = observe_stats(loop);
    tasks_block_end(&block);
    ck_assert_str_eq(first.doing, "block");
    ck_assert_int_gt(first.turn_ns, 0);
    ck_assert_int_ge(second.turn_ns, first.turn_ns + MS(20));
    observe_until_idle(loop);
}

static sem_t entered, released;
static const char *said;

static void block_here(struct bell *b)
{
    if (said)
        loop_set_activity(b->loop, said);
    sem_post(&entered);
    while (sem_wait(&released) < 0)
        ;
}

TEST_EACH(times, reader_during_a_callback_sees_io_or_the_name_set_by_the_callback, 2)
{
    struct loop_stats first, second;
    struct bell bell;

    sem_init(&entered, 0, 0);
    sem_init(&released, 0, 0);
    said = _i ? "reading the tea leaves" : NULL;
    bell_open(&bell, loop, block_here);
    bell_ring(&bell);
    while (sem_wait(&entered) < 0)
        ;
    first = observe_stats(loop);
    PAUSE_MS(20);
    second = observe_stats(loop);
    sem_post(&released);
    ck_assert_str_eq(first.doing, _i ? said : "I/O");
    ck_assert_int_ge(second.turn_ns, first.turn_ns + MS(20));
    observe_until_idle(loop);
    ck_assert_int_ge(observe_stats(loop).io_ns, MS(20));
    bell_close(&bell);
}

TEST_EACH(times, oldest_task_is_the_oldest_of_all_queues, 3)
{
    struct tasks_timely tasks[3];
    struct bell bell;
    int64_t queued_at_ns, age_ns;

    sem_init(&entered, 0, 0);
    sem_init(&released, 0, 0);
    bell_open(&bell, loop, block_here);
    bell_ring(&bell);
    while (sem_wait(&entered) < 0)
        ;
    ck_assert_int_eq(observe_stats(loop).oldest_ns, 0); /* blocked, but not by a task */
    queued_at_ns = clock_now_ns();
    tasks_timely_submit(&tasks[0], &quick_type, loop, (enum loop_queue)_i, 0);
    PAUSE_MS(20);
    for (int i = 1; i < 3; i++)
        tasks_timely_submit(&tasks[i], &quick_type, loop, (enum loop_queue)((_i + i) % 3), 0);
    age_ns = observe_stats(loop).oldest_ns;
    ck_assert_int_ge(age_ns, MS(20));
    ck_assert_int_le(age_ns, clock_now_ns() - queued_at_ns);
    sem_post(&released);
    observe_until_idle(loop);
    ck_assert_int_eq(observe_stats(loop).oldest_ns, 0);
    bell_close(&bell);
}

TEST_EACH(times, a_turn_beyond_the_threshold_is_a_stall, 2)
{
    struct tasks_timely tasks[2];

    teardown();
    loop = create(_i ? MS(500) : 0);
    tasks_timely_submit(&tasks[0], &quick_type, loop, LOOP_TASKS, 0);
    observe_until_idle(loop);
    ck_assert_uint_eq(observe_stats(loop).stalls, 0);
    tasks_timely_submit(&tasks[1], &slow_type, loop, LOOP_TASKS, MS(501));
    observe_until_idle(loop);
    ck_assert_uint_eq(observe_stats(loop).stalls, _i ? 1 : 0);
}

/* ---- the shares ---- */

static void take_20_ms(struct bell *b)
{
    (void)b;
    take(MS(20));
}

TEST(times, achieved_ratio_is_computed_from_the_times)
{
    struct loop_stats s;
    struct tasks_timely task;
    struct bell bell;
    double share;

    bell_open(&bell, loop, take_20_ms);
    bell_ring(&bell);
    UNTIL(atomic_load(&bell.n_heard) == 1);
    observe_until_idle(loop);
    s = observe_stats(loop);
    ck_assert_int_ge(s.io_ns, MS(20));
    ck_assert_int_eq(s.task_ns, 0);
    ck_assert_uint_eq(s.io_ratio_achieved, 100);
    tasks_timely_submit(&task, &slow_type, loop, LOOP_TASKS, MS(20));
    observe_until_idle(loop);
    s = observe_stats(loop);
    ck_assert_int_ge(s.task_ns, MS(20));
    share = 100. * (double)s.io_ns / (double)(s.io_ns + s.task_ns);
    ck_assert_double_le(s.io_ratio_achieved, share + 1);
    ck_assert_double_ge(s.io_ratio_achieved, share - 1);
    bell_close(&bell);
}

TEST(times, time_of_a_poll_is_counted_as_poll_time)
{
    loop_runner_stats(loop);
    observe_until_idle(loop);
    PAUSE_MS(50);
    loop_runner_stats(loop); /* ends it */
    UNTIL(observe_stats(loop).poll_ns >= MS(50));
}
