/*
 * engine/loop_stats: what a loop counts about itself and how old its tasks are, seen from another
 * thread.
 */
#include <pthread.h>

#include "support/bell.h"
#include "support/loop_runner.h"
#include "support/observe.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

#define MS(n) ((n)*NS_PER_MS)

static struct loop *loop;
static struct tasks_block block;

static void setup(void)
{
    struct budget_conf budget = {.io_ratio = 70, .quantum_ns = MS(100)};

    loop = loop_runner_create_with(budget, 65536);
}

static void teardown(void)
{
    loop_runner_destroy(loop);
}

static const struct task_type quick_type = {"quick", tasks_timely_run, tasks_timely_drop};
static const struct task_type slow_type = {"slow", tasks_timely_run, tasks_timely_drop};

GROUP(counts, setup, teardown);

TEST(counts, a_new_loop_has_counted_nothing)
{
    struct loop_stats s = observe_stats(loop);

    ck_assert_uint_eq(s.turns + s.turns_empty + s.polls_blocking + s.io_events, 0);
    ck_assert_uint_eq(s.tasks_run + s.tasks_dropped + s.tasks_rejected + s.tasks_pending, 0);
    ck_assert_uint_eq(s.wakeups_sent + s.wakeups_saved + s.rebuilds + s.stalls, 0);
    ck_assert_int_eq(s.poll_ns + s.io_ns + s.task_ns, 0);
    ck_assert_int_eq(s.oldest_ns, 0);
    ck_assert_int_eq(s.turn_ns, 0);
    ck_assert_int_eq(s.longest_ns, 0);
    ck_assert_ptr_null(s.longest_name);
    ck_assert_uint_eq(s.io_ratio, 70);
    ck_assert_uint_eq(s.io_ratio_achieved, 100);
    ck_assert_uint_eq(s.turn.count + s.queue_wait.count, 0);
}

TEST(counts, tasks_turns_and_polls_are_counted)
{
    struct tasks_counted tasks[3];
    struct loop_stats s;

    for (int i = 0; i < 3; i++) {
        tasks_counted_init(&tasks[i]);
        ck_assert_int_eq(loop_submit(loop, (enum loop_queue)i, &tasks[i].task), 0);
        UNTIL(atomic_load(&tasks[i].run) == 1);
        observe_until_idle(loop);
    }
    s = observe_stats(loop);
    ck_assert_uint_eq(s.tasks_run, 3);
    ck_assert_uint_ge(s.turns, 3);
    ck_assert_uint_ge(s.polls_blocking, 3);
    ck_assert_uint_le(s.turns_empty, s.turns - 3);
    ck_assert_uint_eq(s.io_events, 0); /* waking up is none */
    ck_assert_uint_eq(s.turn.count, s.turns);
}

TEST(counts, ready_descriptors_are_counted)
{
    struct bell bells[5];

    for (int i = 0; i < 5; i++)
        bell_open(&bells[i], loop, NULL);
    ck_assert_uint_eq(observe_stats(loop).io_events, 0);
    for (int i = 0; i < 5; i++)
        bell_ring(&bells[i]);
    for (int i = 0; i < 5; i++)
        UNTIL(atomic_load(&bells[i].n_heard) == 1);
    UNTIL(observe_stats(loop).io_events == 5);
    for (int i = 0; i < 5; i++)
        bell_close(&bells[i]);
    ck_assert_uint_eq(observe_stats(loop).io_events, 5);
}

static void submit_own(void *arg)
{
    struct tasks_timely *own = arg;

    for (int i = 0; i < 10; i++)
        tasks_timely_submit(&own[i], &quick_type, loop, LOOP_TASKS, 0);
}

TEST(counts, unneeded_wakeup_of_a_task_is_counted_as_saved)
{
    struct tasks_timely tasks[100], own[10];
    struct loop_stats before, s;

    tasks_block_begin(&block, loop);
    before = observe_stats(loop);
    for (int i = 0; i < 100; i++)
        tasks_timely_submit(&tasks[i], &quick_type, loop, LOOP_TASKS, 0);
    s = observe_stats(loop);
    ck_assert_uint_eq(s.wakeups_sent, before.wakeups_sent);
    ck_assert_uint_eq(s.wakeups_saved, before.wakeups_saved + 100);
    tasks_block_end(&block);
    observe_until_idle(loop);
    ck_assert_uint_eq(observe_stats(loop).wakeups_saved,
                      before.wakeups_saved + 100); /* waiting, then run */
    loop_runner_call(loop, submit_own, own);
    observe_until_idle(loop);
    s = observe_stats(loop);
    ck_assert_uint_eq(s.wakeups_sent + s.wakeups_saved, /* the call, one way or the other */
                      before.wakeups_sent + before.wakeups_saved + 101);
}

TEST(counts, lazy_task_neither_sends_nor_saves_a_wakeup)
{
    struct tasks_timely tasks[10];
    struct loop_stats before;

    tasks_block_begin(&block, loop);
    before = observe_stats(loop);
    for (int i = 0; i < 10; i++) {
        tasks[i] = (struct tasks_timely){.task.type = &quick_type};
        ck_assert_int_eq(loop_submit_lazy(loop, LOOP_TASKS, &tasks[i].task), 0);
    }
    ck_assert_uint_eq(observe_stats(loop).wakeups_saved, before.wakeups_saved);
    tasks_block_end(&block);
    observe_until_idle(loop);
    ck_assert_uint_eq(observe_stats(loop).wakeups_saved, before.wakeups_saved);
}

static void every_ms(void *arg)
{
    static const struct task_type type = {
        .name = "every ms", .run = tasks_timely_drop, .drop = tasks_timely_drop};

    timer_init(arg, &type);
    loop_schedule_every(loop, arg, 0, NS_PER_MS);
}

TEST(counts, timer_of_the_loop_neither_sends_nor_saves_a_wakeup)
{
    struct loop_stats before, s;
    struct timer every;

    loop_runner_call(loop, every_ms, &every);
    before = observe_stats(loop);
    UNTIL((s = observe_stats(loop), s.tasks_run >= before.tasks_run + 20));
    ck_assert_uint_le(s.wakeups_saved, before.wakeups_saved + 1); /* the call, run after `before` */
    loop_runner_stop(loop);
}

/* Reads them while turns begin and end. */
TEST(counts, duration_of_a_turn_is_never_negative)
{
    struct tasks_counted t;

    for (int i = 0; i < 20000; i++) {
        tasks_counted_init(&t);
        ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &t.task), 0);
        while (atomic_load(&t.run) == 0)
            ck_assert_int_ge(observe_stats(loop).turn_ns, 0);
    }
}

TEST(counts, a_loop_that_has_ended_is_in_no_turn)
{
    loop_runner_stats(loop);
    loop_runner_stop(loop);
    PAUSE_MS(20);
    ck_assert_int_eq(observe_stats(loop).turn_ns, 0);
}

/* ---- ages ---- */

GROUP(times, setup, teardown);

TEST(times, the_age_of_the_oldest_task_grows_while_the_loop_is_blocked)
{
    static const enum loop_queue queues[] = {LOOP_CONTROL, LOOP_TASKS, LOOP_TAIL};
    struct tasks_timely tasks[3];
    struct loop_stats s;

    loop_runner_stats(loop);
    observe_until_idle(loop);
    PAUSE_MS(100);
    ck_assert_int_eq(observe_stats(loop).oldest_ns, 0);
    for (int i = 0; i < 3; i++) {
        int64_t began_at_ns = clock_now_ns();

        tasks_block_begin(&block, loop);
        tasks_timely_submit(&tasks[i], &quick_type, loop, queues[i], 0);
        s = observe_stats(loop);
        ck_assert_int_le(s.oldest_ns, clock_now_ns() - began_at_ns); /* not since an earlier one */
        PAUSE_MS(20);
        ck_assert_int_ge(observe_stats(loop).oldest_ns, s.oldest_ns + MS(20));
        tasks_block_end(&block);
        observe_until_idle(loop);
        ck_assert_int_eq(observe_stats(loop).oldest_ns, 0);
    }
}

TEST(times, task_that_waited_is_counted_in_the_queue_wait)
{
    struct tasks_timely task;
    struct loop_stats before, s;

    tasks_block_begin(&block, loop);
    before = observe_stats(loop);
    tasks_timely_submit(&task, &quick_type, loop, LOOP_TAIL, 0);
    PAUSE_MS(40);
    tasks_block_end(&block);
    observe_until_idle(loop);
    s = observe_stats(loop);
    ck_assert_uint_eq(s.queue_wait.count, before.queue_wait.count + 1);
    ck_assert_int_gt(histogram_quantile_ns(&s.queue_wait, 1000), MS(40));
}

TEST(times, one_task_in_64_and_the_first_in_an_empty_queue_carry_the_time)
{
    struct tasks_timely tasks[140];
    struct loop_stats before;

    tasks_block_begin(&block, loop); /* the first one in the queue */
    before = observe_stats(loop);
    for (int i = 0; i < 140; i++)
        tasks_timely_submit(&tasks[i], &quick_type, loop, LOOP_TASKS, 0);
    tasks_block_end(&block);
    observe_until_idle(loop);
    ck_assert_uint_eq(before.queue_wait.count, 1);
    ck_assert_uint_eq(observe_stats(loop).queue_wait.count, 3); /* and the 65th and the 129th */
}

TEST(times, long_turn_is_counted_in_the_turn_histogram)
{
    struct tasks_timely task;
    struct loop_stats s;

    tasks_timely_submit(&task, &slow_type, loop, LOOP_TASKS, MS(30));
    UNTIL(observe_stats(loop).tasks_run == 1);
    observe_until_idle(loop);
    s = observe_stats(loop);
    ck_assert_int_gt(histogram_quantile_ns(&s.turn, 1000), MS(30));
    ck_assert_int_ge(s.task_ns, MS(30));
}

/* ---- read by others ---- */

static atomic_bool over;

static void *keep_submitting(void *arg)
{
    struct tasks_counted t;

    tasks_counted_init(&t);
    for (unsigned n = 1; !atomic_load(&over); n++) {
        ck_assert_int_eq(loop_submit(loop, (enum loop_queue)(n % 3), &t.task), 0);
        while (atomic_load(&t.run) < n)
            ;
    }
    return arg;
}

TEST(counts, counters_read_by_another_thread_never_fall)
{
    struct loop_stats s, last = observe_stats(loop);
    pthread_t submitter;

    pthread_create(&submitter, NULL, keep_submitting, NULL);
    for (int i = 0; i < 5000; i++) {
        s = observe_stats(loop);
        ck_assert_uint_ge(s.turns, last.turns);
        ck_assert_uint_ge(s.tasks_run, last.tasks_run);
        ck_assert_uint_ge(s.polls_blocking, last.polls_blocking);
        ck_assert_uint_ge(s.wakeups_sent, last.wakeups_sent);
        ck_assert_int_ge(s.poll_ns, last.poll_ns);
        ck_assert_int_ge(s.longest_ns, last.longest_ns);
        ck_assert_uint_ge(s.turn.count, last.turn.count);
        last = s;
    }
    atomic_store(&over, true);
    pthread_join(submitter, NULL);
}
