/*
 * engine/loop, loop_withdraw(): a timer that another thread takes back is run or dropped, never
 * both and never neither.
 */
#include <pthread.h>

#include "engine/loop_internal.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/observe.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/timers.h"
#include "support/until.h"

#define MS(n)   ((n)*NS_PER_MS)
#define A_WHILE (30 * NS_PER_S)

static struct loop *loop;
static struct tasks_block block, second_block;

static void setup(void)
{
    /* With this quantum a task that takes long is the last of its turn. */
    struct budget_conf budget = {.io_ratio = 50, .quantum_ns = 1};

    log_lines_capture(LOG_LEVEL_WARNING);
    loop = loop_runner_create_with(budget, 65536);
}

static void teardown(void)
{
    loop_runner_destroy(loop);
}

static void begin(struct timers_noted *t, int64_t delay_ns, int64_t period_ns)
{
    timers_noted_init(t);
    ck_assert_int_eq(loop_submit_after(loop, &t->timer, delay_ns, period_ns), 0);
}

static bool withdraw(struct timers_noted *t)
{
    return loop_withdraw(loop, &t->timer);
}

/*
 * Those submitted so far are where they wait. A call wakes the loop, but comes before the tasks of
 * its turn.
 */
static void until_arrived(void)
{
    struct loop_stats stats = loop_runner_stats(loop);

    UNTIL((loop_stats(loop, &stats), stats.tasks_pending == 0));
}

/* It was withdrawn, so it is dropped soon, once, and does not run (again). */
static void expect_dropped(struct timers_noted *t, unsigned run)
{
    loop_runner_stats(loop); /* a withdrawal wakes nobody: this does */
    UNTIL(atomic_load(&t->dropped) > 0);
    loop_runner_stop(loop);
    ck_assert_uint_eq(atomic_load(&t->dropped), 1);
    ck_assert_uint_eq(atomic_load(&t->run), run);
    ck_assert(!atomic_load(&t->broken));
}

/* Periods: once, fixed rate, fixed delay. */
static const int64_t periods[] = {0, MS(1), -MS(1)};

GROUP(withdraw, setup, teardown);

TEST_EACH(withdraw, withdrawn_timer_on_its_way_to_the_loop_is_dropped_on_arrival, 3)
{
    struct timers_noted t;

    tasks_block_begin(&block, loop);
    begin(&t, 0, periods[_i]);
    ck_assert(withdraw(&t));
    ck_assert(!withdraw(&t));
    ck_assert_uint_eq(atomic_load(&t.dropped), 0);
    tasks_block_end(&block);
    expect_dropped(&t, 0);
}

TEST_EACH(withdraw, withdrawn_timer_is_dropped_in_the_next_turn_without_a_wakeup, 3)
{
    struct loop_stats before, now;
    struct timers_noted t;

    begin(&t, A_WHILE, periods[_i]);
    before = observe_until_asleep(loop);
    ck_assert(withdraw(&t));
    ck_assert(!withdraw(&t));
    PAUSE_MS(20);
    loop_stats(loop, &now);
    ck_assert_uint_eq(now.wakeups_sent, before.wakeups_sent);
    ck_assert_uint_eq(now.turns, before.turns);
    ck_assert_uint_eq(atomic_load(&t.dropped), 0);
    expect_dropped(&t, 0);
}

static void *begin_second_block(void *arg)
{
    tasks_block_begin(&second_block, loop);
    return arg;
}

/*
 * Have ${t} taken off the heap by a turn that is then held up by a task before it. With the quantum
 * of one nanosecond the turns are: the first block; the arrival; the second block, behind which the
 * timer, which is due, takes its place.
 */
static void hold_up_when_due(struct timers_noted *t, int64_t period_ns)
{
    pthread_t submitter;

    tasks_block_begin(&block, loop);
    begin(t, 0, period_ns);
    pthread_create(&submitter, NULL, begin_second_block, NULL);
    UNTIL(gate_count(&loop->queues[LOOP_TASKS].gate) == 3);
    tasks_block_end(&block);
    pthread_join(submitter, NULL);
    ck_assert_int_eq(t->timer.state, TIMER_DUE);
}

TEST_EACH(withdraw, withdrawn_timer_that_is_due_and_not_begun_is_dropped, 3)
{
    struct timers_noted t;

    hold_up_when_due(&t, periods[_i]);
    ck_assert(withdraw(&t));
    ck_assert(!withdraw(&t));
    tasks_block_end(&second_block);
    expect_dropped(&t, 0);
}

/* A timer that withdraws the one that is due behind it. */
struct withdrawing {
    struct timer timer;
    struct timers_noted next;
    bool withdrawn;
};

static void withdrawing_run(struct task *t)
{
    struct withdrawing *w = TIMER_OWNER(t, struct withdrawing, timer);

    w->withdrawn = withdraw(&w->next);
}

static void submit_withdrawing(void *arg)
{
    struct withdrawing *w = arg;

    ck_assert_int_eq(loop_submit_after(loop, &w->timer, 0, 0), 0);
    begin(&w->next, 0, 0);
}

TEST(withdraw, timer_withdrawn_in_the_turn_in_which_it_is_due_does_not_run)
{
    static const struct task_type type = {.name = "withdrawing", .run = withdrawing_run};
    struct withdrawing w = {.withdrawn = false};

    loop_runner_destroy(loop);
    loop = loop_runner_create(); /* its turns run all that is due */
    timer_init(&w.timer, &type);
    loop_runner_call(loop, submit_withdrawing, &w);
    UNTIL(atomic_load(&w.next.run) + atomic_load(&w.next.dropped) > 0);
    ck_assert(w.withdrawn);
    expect_dropped(&w.next, 0);
}

TEST(withdraw, single_run_timer_cannot_be_withdrawn_while_it_runs)
{
    struct timers_block t;

    timers_block_init(&t);
    ck_assert_int_eq(loop_submit_after(loop, &t.timer, 0, 0), 0);
    timers_block_wait(&t);
    ck_assert(!loop_withdraw(loop, &t.timer));
    timers_block_end(&t);
    loop_runner_stats(loop);
    ck_assert(!loop_withdraw(loop, &t.timer));
    loop_runner_stop(loop);
    ck_assert_uint_eq(atomic_load(&t.run), 1);
    ck_assert_uint_eq(atomic_load(&t.dropped), 0);
}

TEST_EACH(withdraw, periodic_timer_withdrawn_during_a_run_does_not_run_again, 2)
{
    struct timers_block t;

    timers_block_init(&t);
    ck_assert_int_eq(loop_submit_after(loop, &t.timer, 0, _i ? MS(1) : -MS(1)), 0);
    timers_block_wait(&t);
    ck_assert(loop_withdraw(loop, &t.timer));
    ck_assert(!loop_withdraw(loop, &t.timer));
    PAUSE_MS(5); /* it would be due again */
    ck_assert_uint_eq(atomic_load(&t.dropped), 0);
    timers_block_end(&t);
    UNTIL(atomic_load(&t.dropped) == 1);
    PAUSE_MS(10);
    loop_runner_stop(loop);
    ck_assert_uint_eq(atomic_load(&t.run), 1);
    ck_assert_uint_eq(atomic_load(&t.dropped), 1);
}

TEST_EACH(withdraw, withdrawing_stops_a_periodic_timer, 2)
{
    struct timers_noted t;
    unsigned run;

    begin(&t, 0, _i ? MS(1) : -MS(1));
    UNTIL(atomic_load(&t.run) >= 5);
    ck_assert(withdraw(&t));
    loop_runner_stats(loop);
    UNTIL(atomic_load(&t.dropped) == 1);
    run = atomic_load(&t.run);
    PAUSE_MS(20);
    expect_dropped(&t, run);
}

TEST(withdraw, timer_cannot_be_withdrawn_after_its_run)
{
    struct timers_noted t;

    timers_noted_init(&t);
    ck_assert(!withdraw(&t)); /* nor was it ever submitted */
    begin(&t, 0, 0);
    UNTIL(atomic_load(&t.run) == 1);
    ck_assert(!withdraw(&t));
    loop_runner_stop(loop);
    ck_assert(!withdraw(&t));
    ck_assert_uint_eq(gate_count(&loop->queues[LOOP_CONTROL].gate), 0);
    ck_assert_uint_eq(atomic_load(&t.run), 1);
    ck_assert_uint_eq(atomic_load(&t.dropped), 0);
}

static void cancel(void *arg)
{
    loop_cancel(loop, arg);
}

TEST(withdraw, timer_cancelled_by_its_loop_can_only_be_submitted_again)
{
    struct timers_noted t;

    begin(&t, A_WHILE, 0);
    until_arrived();
    loop_runner_call(loop, cancel, &t.timer);
    ck_assert(!withdraw(&t));
    ck_assert_uint_eq(atomic_load(&t.run) + atomic_load(&t.dropped), 0);
    begin(&t, 0, 0);
    UNTIL(atomic_load(&t.run) == 1);
}

static void withdraw_and_cancel(void *arg)
{
    struct timers_noted *t = arg;

    ck_assert(withdraw(t));
    loop_cancel(loop, &t->timer);
    ck_assert(!withdraw(t));
    ck_assert_int_eq(atomic_load(&t->timer.claim), TIMER_WITHDRAWN); /* until it is dropped */
}

TEST_EACH(withdraw, withdrawn_timer_is_dropped_even_if_its_loop_cancels_it, 3)
{
    struct timers_noted t;

    begin(&t, A_WHILE, periods[_i]);
    until_arrived();
    loop_runner_call(loop, withdraw_and_cancel, &t);
    expect_dropped(&t, 0);
}

TEST(withdraw, dropped_timer_may_be_submitted_again)
{
    struct timers_noted t;

    for (int i = 0; i < 20; i++) {
        begin(&t, A_WHILE, periods[i % 3]);
        if (i % 2)
            until_arrived();
        ck_assert(withdraw(&t));
        loop_runner_stats(loop);
        UNTIL(atomic_load(&t.dropped) == 1);
        ck_assert_int_eq(loop_submit_after(loop, &t.timer, 0, 0), 0);
        UNTIL(atomic_load(&t.run) == 1);
    }
}

/* ---- the end of the loop ---- */

TEST_EACH(withdraw, timer_dropped_by_the_end_of_the_loop_cannot_be_withdrawn, 3)
{
    struct timers_noted t;

    begin(&t, A_WHILE, periods[_i]);
    until_arrived();
    loop_runner_stop(loop);
    ck_assert(!withdraw(&t));
    ck_assert_uint_eq(atomic_load(&t.run), 0);
    ck_assert_uint_eq(atomic_load(&t.dropped), 1);
}

TEST_EACH(withdraw, timer_withdrawn_before_the_end_of_the_loop_is_dropped_once, 2)
{
    struct timers_noted waiting[3], coming[3];

    for (int i = 0; i < 3; i++)
        begin(&waiting[i], A_WHILE, periods[i]);
    until_arrived();
    tasks_block_begin(&block, loop);
    for (int i = 0; i < 3; i++) {
        begin(&coming[i], 0, periods[i]);
        ck_assert(withdraw(&coming[i]));
        ck_assert(withdraw(&waiting[i]));
    }
    loop_stop(loop, 0, _i ? 5 * NS_PER_S : 0); /* in its turns, or with what they leave behind */
    tasks_block_end(&block);
    loop_runner_join(loop);
    for (int i = 0; i < 3; i++) {
        ck_assert_uint_eq(atomic_load(&waiting[i].run) + atomic_load(&coming[i].run), 0);
        ck_assert_uint_eq(atomic_load(&waiting[i].dropped), 1);
        ck_assert_uint_eq(atomic_load(&coming[i].dropped), 1);
    }
}

/* ---- many ---- */

TEST(withdraw, many_withdrawn_timers_leave_none_in_the_heap)
{
    static struct timers_noted timers[20000];
    struct loop_stats stats;

    for (size_t i = 0; i < ARRAY_LEN(timers); i++) {
        begin(&timers[i], A_WHILE + (int64_t)(i * 7919 % ARRAY_LEN(timers)), periods[i % 3]);
        if (i % 4 < 2)
            ck_assert(withdraw(&timers[i]));
    }
    for (size_t i = 0; i < ARRAY_LEN(timers); i++)
        if (i % 4 >= 2)
            ck_assert(withdraw(&timers[i]));
    loop_runner_stats(loop);
    for (size_t i = 0; i < ARRAY_LEN(timers); i++)
        UNTIL(atomic_load(&timers[i].dropped) == 1);
    UNTIL((loop_stats(loop, &stats), stats.tasks_pending == 0));
    loop_runner_stop(loop);
    ck_assert_uint_eq(loop->schedule.count, 0);
    for (size_t i = 0; i < ARRAY_LEN(timers); i++)
        ck_assert_uint_eq(atomic_load(&timers[i].run), 0);
}
