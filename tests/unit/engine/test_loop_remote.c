/*
 * engine/loop, timers that other threads give it: never early, and the loop woken for them only if
 * need be.
 */
#include <stdlib.h>

#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/observe.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/timers.h"
#include "support/until.h"

#define MS(n) ((n)*NS_PER_MS)

static struct loop *loop;
static struct tasks_block block;
static struct tasks_trace trace;

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_WARNING);
    loop = loop_runner_create();
    trace = (struct tasks_trace){.len = 0};
}

static void teardown(void)
{
    loop_runner_destroy(loop);
}

GROUP(time, setup, teardown);

TEST(time, a_timer_from_another_thread_is_never_early)
{
    struct timers_noted timers[100];
    int64_t earliest_at_ns[100];

    srand(5);
    for (int i = 0; i < 100; i++) {
        int64_t delay_ns = rand() % MS(30);

        earliest_at_ns[i] = clock_now_ns() + delay_ns;
        timers_begin(loop, &timers[i], delay_ns, 0);
    }
    for (int i = 0; i < 100; i++) {
        UNTIL(atomic_load(&timers[i].run) == 1);
        ck_assert_int_ge(timers[i].began_at_ns[0], earliest_at_ns[i]);
        ck_assert_int_ge(timers[i].began_at_ns[0], timers[i].planned_at_ns[0]);
        ck_assert_int_lt(timers[i].began_at_ns[0], earliest_at_ns[i] + 5 * NS_PER_S);
    }
}

TEST(time, delay_counts_from_the_call_and_not_from_its_arrival_at_the_loop)
{
    struct timers_noted t;
    int64_t before_at_ns, after_at_ns;

    tasks_block_begin(&block, loop);
    before_at_ns = clock_now_ns();
    timers_begin(loop, &t, MS(10), 0);
    after_at_ns = clock_now_ns();
    PAUSE_MS(50);
    tasks_block_end(&block);
    UNTIL(atomic_load(&t.run) == 1);
    ck_assert_int_ge(t.planned_at_ns[0], before_at_ns + MS(10));
    ck_assert_int_le(t.planned_at_ns[0], after_at_ns + MS(10));
}

TEST(time, negative_delay_is_zero_and_order_is_kept)
{
    struct tasks_timer timers[26];
    struct timers_noted last;

    for (int i = 0; i < 26; i++) {
        tasks_timer_init(&timers[i], &trace, (char)('a' + i));
        ck_assert_int_eq(loop_submit_after(loop, &timers[i].timer, i % 2 ? INT64_MIN : 0, 0), 0);
    }
    timers_begin(loop, &last, 0, 0);
    UNTIL(atomic_load(&last.run) == 1);
    loop_runner_stop(loop);
    ck_assert_str_eq(trace.text, "abcdefghijklmnopqrstuvwxyz");
}

TEST(time, timers_run_by_instant_and_not_by_order_of_submission)
{
    struct tasks_timer timers[3];
    struct timers_noted last;

    tasks_block_begin(&block, loop);
    for (int i = 0; i < 3; i++) {
        tasks_timer_init(&timers[i], &trace, (char)('a' + i));
        ck_assert_int_eq(loop_submit_after(loop, &timers[i].timer, MS(30 - 10 * i), 0), 0);
    }
    timers_begin(loop, &last, MS(1), 0);
    PAUSE_MS(40); /* so that all are due when they arrive */
    tasks_block_end(&block);
    UNTIL(atomic_load(&last.run) == 1);
    loop_runner_stats(loop);
    loop_runner_stop(loop);
    ck_assert_str_eq(trace.text, "cba");
}

TEST(time, the_first_timer_starts_the_thread)
{
    struct timers_noted t;

    timers_begin(loop, &t, MS(5), 0);
    ck_assert_int_eq(loop_state(loop), LOOP_STARTED);
    UNTIL(atomic_load(&t.run) == 1);
    ck_assert_uint_eq(fault_calls(FAULT_PTHREAD_CREATE), 1);
}

TEST(time, a_loop_that_wakes_up_earlier_anyway_is_not_woken)
{
    struct timers_noted sooner, later[10];
    struct loop_stats before, now;

    timers_begin(loop, &sooner, 30 * NS_PER_S, 0);
    before = observe_until_asleep(loop);
    for (int i = 0; i < 10; i++)
        timers_begin(loop, &later[i], i == 9 ? CLOCK_NEVER : (31 + i) * NS_PER_S, 0);
    PAUSE_MS(50);
    loop_stats(loop, &now);
    ck_assert_uint_eq(now.wakeups_sent, before.wakeups_sent);
    ck_assert_uint_eq(now.turns, before.turns);
    ck_assert_uint_eq(now.tasks_pending, 10);
    loop_runner_stop(loop);
}

TEST(time, a_loop_that_would_sleep_too_long_is_woken_once)
{
    struct timers_noted later, sooner;
    struct loop_stats before, now;

    timers_begin(loop, &later, 30 * NS_PER_S, 0);
    before = observe_until_asleep(loop);
    timers_begin(loop, &sooner, MS(20), 0);
    UNTIL(atomic_load(&sooner.run) == 1); /* within 20 s */
    loop_stats(loop, &now);
    ck_assert_uint_eq(now.wakeups_sent, before.wakeups_sent + 1);
    ck_assert_uint_eq(atomic_load(&later.run), 0);
    loop_runner_stop(loop);
}

TEST(time, a_loop_that_sleeps_without_end_is_woken_for_an_instant_but_not_for_never)
{
    struct loop_stats before = observe_until_asleep(loop), now;
    struct timers_noted never, one_day;

    timers_begin(loop, &never, CLOCK_NEVER, 0);
    PAUSE_MS(20);
    loop_stats(loop, &now);
    ck_assert_uint_eq(now.wakeups_sent, before.wakeups_sent);
    timers_begin(loop, &one_day, 86400 * NS_PER_S, 0);
    UNTIL((loop_stats(loop, &now), now.tasks_pending == 0)); /* both have arrived */
    ck_assert_uint_eq(now.wakeups_sent, before.wakeups_sent + 1);
    loop_runner_stop(loop);
}

TEST(time, a_loop_that_is_awake_is_not_woken)
{
    struct loop_stats before, now;
    struct timers_noted t;

    tasks_block_begin(&block, loop);
    loop_stats(loop, &before);
    timers_begin(loop, &t, 0, 0);
    loop_stats(loop, &now);
    ck_assert_uint_eq(now.wakeups_sent, before.wakeups_sent);
    tasks_block_end(&block);
    UNTIL(atomic_load(&t.run) == 1);
}

static void submit_here(void *arg)
{
    timers_after(loop, arg, MS(5), 0);
}

TEST(time, timer_submitted_on_its_own_loop_sends_no_wakeup)
{
    struct loop_stats before, now;
    struct timers_noted t;

    timers_noted_init(&t);
    before = observe_until_asleep(loop);
    loop_runner_call(loop, submit_here, &t);
    UNTIL(atomic_load(&t.run) == 1);
    loop_stats(loop, &now);
    ck_assert_uint_eq(now.wakeups_sent, before.wakeups_sent + 1); /* the call's */
}

TEST(time, timer_may_be_submitted_by_another_loop)
{
    struct loop *other = loop_runner_create();
    struct timers_noted t;

    timers_noted_init(&t);
    loop_runner_call(other, submit_here, &t);
    UNTIL(atomic_load(&t.run) == 1);
    loop_runner_destroy(other);
}

TEST(time, timer_that_has_run_may_be_submitted_again)
{
    struct timers_noted t;

    timers_begin(loop, &t, 0, 0);
    for (unsigned i = 1; i <= 50; i++) {
        UNTIL(atomic_load(&t.run) == i);
        timers_after(loop, &t, i % 3 * NS_PER_US, 0);
    }
    UNTIL(atomic_load(&t.run) == 51);
    PAUSE_MS(10);
    ck_assert_uint_eq(atomic_load(&t.run), 51);
    ck_assert_uint_eq(atomic_load(&t.dropped), 0);
}

TEST(time, a_fixed_rate_keeps_to_its_instants_and_catches_up)
{
    struct timers_noted t;

    timers_noted_init(&t);
    t.work_ns = MS(81); /* four instants go by */
    t.last_run = TIMERS_NOTES;
    timers_after(loop, &t, MS(10), MS(20));
    UNTIL(atomic_load(&t.run) == TIMERS_NOTES);
    for (int i = 1; i < TIMERS_NOTES; i++) {
        ck_assert_int_eq(t.planned_at_ns[i], t.planned_at_ns[i - 1] + MS(20));
        ck_assert_int_ge(t.began_at_ns[i], t.planned_at_ns[i]);
    }
    PAUSE_MS(40);
    ck_assert_uint_eq(atomic_load(&t.run), TIMERS_NOTES);
}

TEST(time, a_fixed_delay_counts_from_the_end_of_a_run)
{
    struct timers_noted t;

    timers_noted_init(&t);
    t.work_ns = MS(15);
    t.last_run = 4;
    timers_after(loop, &t, 0, -MS(10));
    UNTIL(atomic_load(&t.run) == 4);
    ck_assert_int_ge(t.began_at_ns[1] - t.began_at_ns[0], MS(25));
    for (int i = 2; i < 4; i++)
        ck_assert_int_ge(t.began_at_ns[i] - t.began_at_ns[i - 1], MS(10));
}

static const int64_t endless[][2] = {
    {CLOCK_NEVER, 0}, {CLOCK_NEVER, CLOCK_NEVER}, {CLOCK_NEVER - 1, -CLOCK_NEVER}};

TEST_EACH(time, endless_delay_neither_runs_nor_delays_other_timers, ARRAY_LEN(endless))
{
    struct timers_noted never, soon;

    timers_begin(loop, &never, endless[_i][0], endless[_i][1]);
    timers_begin(loop, &soon, MS(5), 0);
    UNTIL(atomic_load(&soon.run) == 1);
    loop_runner_stop(loop);
    ck_assert_uint_eq(atomic_load(&never.run), 0);
    ck_assert_uint_eq(atomic_load(&never.dropped), 1);
}

TEST_EACH(time, endless_period_is_a_single_run, 2)
{
    struct timers_noted t;

    timers_begin(loop, &t, 0, _i ? CLOCK_NEVER : -CLOCK_NEVER);
    UNTIL(atomic_load(&t.run) == 1);
    PAUSE_MS(20);
    loop_runner_stop(loop);
    ck_assert_uint_eq(atomic_load(&t.run), 1);
    ck_assert_uint_eq(atomic_load(&t.dropped), 1);
}

/* A periodic one that in its first run cancels itself and goes on with another period. */
static struct timers_noted changing;
static atomic_uint n_changed;

static void change_run(struct task *t)
{
    (void)t;
    if (atomic_fetch_add(&n_changed, 1) > 0)
        return;
    loop_cancel(loop, &changing.timer);
    timers_after(loop, &changing, MS(1), MS(2));
}

TEST(time, periodic_timer_may_be_submitted_again_in_its_own_run)
{
    static const struct task_type type = {.name = "changing", .run = change_run};

    timers_noted_init(&changing);
    timer_init(&changing.timer, &type);
    timers_after(loop, &changing, 0, MS(1));
    UNTIL(atomic_load(&n_changed) > 5);
    ck_assert(loop_withdraw(loop, &changing.timer));
    UNTIL(loop_runner_stats(loop).tasks_dropped == 1);
}
