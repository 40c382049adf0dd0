/* engine/loop, loop_withdraw(): a timer that another thread takes back is run or dropped, never both and never neither. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "engine/loop_internal.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
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
    ck_assert_int_eq(loop_submit_after(loop, &t->timed, delay_ns, period_ns), 0);
}

static bool withdraw(struct timers_noted *t)
{
    return loop_withdraw(loop, &t->timed);
}

/* Those submitted so far are where they wait. A call wakes the loop, but comes before the tasks of its turn. */
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

START_TEST(one_that_is_still_coming_is_dropped_when_it_arrives)
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
END_TEST

START_TEST(one_that_waits_is_dropped_in_the_next_turn_and_wakes_nobody)
{
    struct loop_stats before, now;
    struct timers_noted t;

    begin(&t, A_WHILE, periods[_i]);
    until_arrived();
    now = loop_runner_stats(loop);
    UNTIL((loop_stats(loop, &before), before.polls_blocking > now.polls_blocking));
    PAUSE_MS(20);
    loop_stats(loop, &before);
    ck_assert(withdraw(&t));
    ck_assert(!withdraw(&t));
    PAUSE_MS(20);
    loop_stats(loop, &now);
    ck_assert_uint_eq(now.wakeups_sent, before.wakeups_sent);
    ck_assert_uint_eq(now.turns, before.turns);
    ck_assert_uint_eq(atomic_load(&t.dropped), 0);
    expect_dropped(&t, 0);
}
END_TEST

static void *begin_second_block(void *arg)
{
    tasks_block_begin(&second_block, loop);
    return arg;
}

/* Have ${t}, which waits, taken off the heap by a turn that is then held up by a task before it. */
static void hold_up_when_due(struct timers_noted *t)
{
    pthread_t submitter;

    tasks_block_begin(&block, loop);
    pthread_create(&submitter, NULL, begin_second_block, NULL);
    UNTIL(gate_count(&loop->gates[LOOP_TASKS]) == 2);
    UNTIL(clock_now_ns() > t->timed.at_ns);
    tasks_block_end(&block);
    pthread_join(submitter, NULL);
    ck_assert_int_eq(t->timed.state, TIMED_DUE);
}

START_TEST(one_that_is_due_and_has_not_begun_is_dropped)
{
    struct timers_noted t;

    begin(&t, MS(100), periods[_i]);
    until_arrived();
    hold_up_when_due(&t);
    ck_assert(withdraw(&t));
    ck_assert(!withdraw(&t));
    tasks_block_end(&second_block);
    expect_dropped(&t, 0);
}
END_TEST

START_TEST(one_that_runs_only_once_cannot_be_withdrawn_while_it_does)
{
    struct timers_block t;

    timers_block_init(&t);
    ck_assert_int_eq(loop_submit_after(loop, &t.timed, 0, 0), 0);
    timers_block_wait(&t);
    ck_assert(!loop_withdraw(loop, &t.timed));
    timers_block_end(&t);
    loop_runner_stats(loop);
    ck_assert(!loop_withdraw(loop, &t.timed));
    loop_runner_stop(loop);
    ck_assert_uint_eq(atomic_load(&t.run), 1);
    ck_assert_uint_eq(atomic_load(&t.dropped), 0);
}
END_TEST

START_TEST(a_periodic_one_that_is_withdrawn_while_it_runs_runs_to_its_end_and_not_again)
{
    struct timers_block t;

    timers_block_init(&t);
    ck_assert_int_eq(loop_submit_after(loop, &t.timed, 0, _i ? MS(1) : -MS(1)), 0);
    timers_block_wait(&t);
    ck_assert(loop_withdraw(loop, &t.timed));
    ck_assert(!loop_withdraw(loop, &t.timed));
    PAUSE_MS(5); /* it would be due again */
    ck_assert_uint_eq(atomic_load(&t.dropped), 0);
    timers_block_end(&t);
    UNTIL(atomic_load(&t.dropped) == 1);
    PAUSE_MS(10);
    loop_runner_stop(loop);
    ck_assert_uint_eq(atomic_load(&t.run), 1);
    ck_assert_uint_eq(atomic_load(&t.dropped), 1);
}
END_TEST

START_TEST(a_periodic_one_stops)
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
END_TEST

START_TEST(after_its_run_it_is_too_late)
{
    struct timers_noted t;

    timers_noted_init(&t);
    ck_assert(!withdraw(&t)); /* nor was it ever submitted */
    begin(&t, 0, 0);
    UNTIL(atomic_load(&t.run) == 1);
    ck_assert(!withdraw(&t));
    loop_runner_stop(loop);
    ck_assert(!withdraw(&t));
    ck_assert_uint_eq(atomic_load(&t.run), 1);
    ck_assert_uint_eq(atomic_load(&t.dropped), 0);
}
END_TEST

static void cancel(void *arg)
{
    loop_cancel(loop, arg);
}

START_TEST(what_the_loop_has_cancelled_can_only_be_submitted_again)
{
    struct timers_noted t;

    begin(&t, A_WHILE, 0);
    until_arrived();
    loop_runner_call(loop, cancel, &t.timed);
    ck_assert(!withdraw(&t));
    ck_assert_uint_eq(atomic_load(&t.run) + atomic_load(&t.dropped), 0);
    begin(&t, 0, 0);
    UNTIL(atomic_load(&t.run) == 1);
}
END_TEST

static void withdraw_and_cancel(void *arg)
{
    struct timers_noted *t = arg;

    ck_assert(withdraw(t));
    loop_cancel(loop, &t->timed);
    ck_assert(!withdraw(t));
}

START_TEST(a_withdrawn_one_is_dropped_even_if_the_loop_cancels_it)
{
    struct timers_noted t;

    begin(&t, A_WHILE, periods[_i]);
    until_arrived();
    loop_runner_call(loop, withdraw_and_cancel, &t);
    expect_dropped(&t, 0);
}
END_TEST

START_TEST(what_was_dropped_may_be_submitted_again)
{
    struct timers_noted t;

    for (int i = 0; i < 20; i++) {
        begin(&t, A_WHILE, periods[i % 3]);
        if (i % 2)
            until_arrived();
        ck_assert(withdraw(&t));
        loop_runner_stats(loop);
        UNTIL(atomic_load(&t.dropped) == 1);
        ck_assert_int_eq(loop_submit_after(loop, &t.timed, 0, 0), 0);
        UNTIL(atomic_load(&t.run) == 1);
    }
}
END_TEST

/* ---- the end of the loop ---- */

START_TEST(what_the_end_of_the_loop_dropped_cannot_be_withdrawn)
{
    struct timers_noted t;

    begin(&t, A_WHILE, periods[_i]);
    until_arrived();
    loop_runner_stop(loop);
    ck_assert(!withdraw(&t));
    ck_assert_uint_eq(atomic_load(&t.run), 0);
    ck_assert_uint_eq(atomic_load(&t.dropped), 1);
}
END_TEST

START_TEST(what_was_withdrawn_before_the_end_is_dropped_once)
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
    loop_join(loop);
    for (int i = 0; i < 3; i++) {
        ck_assert_uint_eq(atomic_load(&waiting[i].run) + atomic_load(&coming[i].run), 0);
        ck_assert_uint_eq(atomic_load(&waiting[i].dropped), 1);
        ck_assert_uint_eq(atomic_load(&coming[i].dropped), 1);
    }
}
END_TEST

/* ---- many ---- */

START_TEST(many_that_are_withdrawn_leave_nothing_behind)
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
END_TEST

#define TIMERS  100
#define CALLERS 2 /* who withdraw each of them */

#ifdef __SANITIZE_THREAD__
#define RACES 20
#else
#define RACES 100
#endif

static struct timers_noted racing[TIMERS];
static atomic_uint n_withdrawn[TIMERS];
static pthread_barrier_t start;

static void *withdraw_all(void *arg)
{
    unsigned step = arg == &racing ? 1 : 3; /* in another order than the other */

    pthread_barrier_wait(&start);
    for (unsigned i = 0; i < TIMERS; i++) {
        unsigned which = i * step % TIMERS;

        atomic_fetch_add(&n_withdrawn[which], withdraw(&racing[which]));
        if (i % 8 == 0)
            sched_yield();
    }
    return NULL;
}

/* Submit them all, have them withdrawn while they run, and, if ${stop}, end the loop meanwhile. */
static void race_once(unsigned round, bool stop)
{
    int64_t max_ns =
        1 + round % 6 * 60 * NS_PER_US; /* some begin before the withdrawals, and some after */
    pthread_t callers[CALLERS];
    unsigned seed = round;

    for (unsigned i = 0; i < TIMERS; i++) {
        timers_noted_init(&racing[i]);
        atomic_store(&n_withdrawn[i], 0);
        ck_assert_int_eq(loop_submit_after(loop, &racing[i].timed, rand_r(&seed) % max_ns,
                                           i % 3 ? 0 : 20 * NS_PER_US),
                         0);
    }
    for (int i = 0; i < CALLERS; i++)
        pthread_create(&callers[i], NULL, withdraw_all, i ? (void *)&seed : (void *)&racing);
    pthread_barrier_wait(&start);
    if (stop)
        loop_stop(loop, 0, round % 2 ? 0 : NS_PER_S);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(callers[i], NULL);
}

static unsigned race_end_of(const struct timers_noted *t)
{
    return atomic_load(&t->run) + atomic_load(&t->dropped);
}

START_TEST(a_timer_that_races_with_its_withdrawal_is_run_or_dropped_as_withdraw_said)
{
    pthread_barrier_init(&start, NULL, CALLERS + 1);
    for (unsigned round = 0; round < RACES; round++) {
        race_once(round, false);
        loop_runner_stats(loop);
        for (unsigned i = 0; i < TIMERS; i++) {
            struct timers_noted *t = &racing[i];
            bool periodic = i % 3 == 0;

            UNTIL(race_end_of(t) > 0);
            if (periodic) { /* it goes on until it is withdrawn */
                ck_assert_uint_eq(atomic_load(&n_withdrawn[i]), 1);
                UNTIL(atomic_load(&t->dropped) == 1);
            } else {
                ck_assert_uint_eq(race_end_of(t), 1);
                ck_assert_uint_eq(atomic_load(&n_withdrawn[i]), atomic_load(&t->dropped));
            }
            ck_assert(!atomic_load(&t->broken));
        }
    }
}
END_TEST

START_TEST(so_it_is_when_the_loop_ends_meanwhile)
{
    pthread_barrier_init(&start, NULL, CALLERS + 1);
    for (unsigned round = 0; round < RACES; round++) {
        race_once(round, true);
        loop_join(loop);
        for (unsigned i = 0; i < TIMERS; i++) {
            struct timers_noted *t = &racing[i];

            ck_assert_uint_le(atomic_load(&n_withdrawn[i]), 1);
            if (i % 3 == 0) /* periodic: only dropping ends it */
                ck_assert_uint_eq(atomic_load(&t->dropped), 1);
            else
                ck_assert_uint_eq(race_end_of(t), 1);
            ck_assert(atomic_load(&n_withdrawn[i]) == 0 || atomic_load(&t->dropped) == 1);
            ck_assert(!atomic_load(&t->broken));
        }
        loop_destroy(loop);
        setup();
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine/loop_withdraw");
    TCase *tc = suite_group(suite, "withdraw");
    TCase *race = suite_group(suite, "race");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, one_that_is_still_coming_is_dropped_when_it_arrives, 0, 3);
    tcase_add_loop_test(tc, one_that_waits_is_dropped_in_the_next_turn_and_wakes_nobody, 0, 3);
    tcase_add_loop_test(tc, one_that_is_due_and_has_not_begun_is_dropped, 0, 3);
    tcase_add_test(tc, one_that_runs_only_once_cannot_be_withdrawn_while_it_does);
    tcase_add_loop_test(
        tc, a_periodic_one_that_is_withdrawn_while_it_runs_runs_to_its_end_and_not_again, 0, 2);
    tcase_add_loop_test(tc, a_periodic_one_stops, 0, 2);
    tcase_add_test(tc, after_its_run_it_is_too_late);
    tcase_add_test(tc, what_the_loop_has_cancelled_can_only_be_submitted_again);
    tcase_add_loop_test(tc, a_withdrawn_one_is_dropped_even_if_the_loop_cancels_it, 0, 3);
    tcase_add_test(tc, what_was_dropped_may_be_submitted_again);
    tcase_add_loop_test(tc, what_the_end_of_the_loop_dropped_cannot_be_withdrawn, 0, 3);
    tcase_add_loop_test(tc, what_was_withdrawn_before_the_end_is_dropped_once, 0, 2);
    tcase_add_test(tc, many_that_are_withdrawn_leave_nothing_behind);
    tcase_add_checked_fixture(race, setup, teardown);
    tcase_add_test(race, a_timer_that_races_with_its_withdrawal_is_run_or_dropped_as_withdraw_said);
    tcase_add_test(race, so_it_is_when_the_loop_ends_meanwhile);
    return suite_run(suite);
}
