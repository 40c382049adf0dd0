/*
 * engine/loop, timers that other threads give it: who has one that is refused, and what becomes of
 * them at the end.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
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

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_WARNING);
    loop = loop_runner_create();
}

static void teardown(void)
{
    loop_runner_destroy(loop);
}

GROUP(life, setup, teardown);

TEST(life, full_loop_refuses_and_leaves_the_timer_to_the_caller)
{
    struct budget_conf budget = {.io_ratio = 50, .quantum_ns = MS(100)};
    struct tasks_counted filling[LOOP_PENDING_MIN];
    struct timers_noted t;

    teardown();
    loop = loop_runner_create_with(budget, LOOP_PENDING_MIN);
    tasks_block_begin(&block, loop);
    for (int i = 0; i < LOOP_PENDING_MIN - 1; i++) {
        tasks_counted_init(&filling[i]);
        ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, &filling[i].task), 0);
    }
    timers_noted_init(&t);
    ck_assert_int_eq(loop_submit_after(loop, &t.timer, 0, MS(1)), -EAGAIN);
    ck_assert(!loop_withdraw(loop, &t.timer));
    tasks_block_end(&block);
    UNTIL(loop_submit_after(loop, &t.timer, 0, 0) == 0);
    UNTIL(atomic_load(&t.run) == 1);
    ck_assert_uint_eq(atomic_load(&t.dropped), 0);
}

TEST_EACH(life, loop_that_has_ended_refuses_and_the_timer_may_go_to_another_loop, 2)
{
    struct timers_noted t;

    if (_i)
        loop_runner_stats(loop); /* it had a thread */
    loop_runner_stop(loop);
    timers_noted_init(&t);
    ck_assert_int_eq(loop_submit_after(loop, &t.timer, 0, 0), -ESHUTDOWN);
    ck_assert(!loop_withdraw(loop, &t.timer));
    ck_assert_uint_eq(atomic_load(&t.run) + atomic_load(&t.dropped), 0);
    loop_destroy(loop);
    setup();
    timers_after(loop, &t, 0, 0);
    UNTIL(atomic_load(&t.run) == 1);
}

TEST(life, thread_that_cannot_start_leaves_the_timer_to_the_caller)
{
    struct timers_noted t;

    timers_noted_init(&t);
    fault_plan(FAULT_PTHREAD_CREATE, 0, 1, EAGAIN);
    ck_assert_int_eq(loop_submit_after(loop, &t.timer, 0, 0), -EAGAIN);
    ck_assert_int_eq(loop_state(loop), LOOP_NOT_STARTED);
    timers_after(loop, &t, 0, 0);
    UNTIL(atomic_load(&t.run) == 1);
    ck_assert_uint_eq(atomic_load(&t.dropped), 0);
}

TEST_ABORTS(life, submitting_a_waiting_timer_is_a_bug)
{
    struct timers_noted t;

    tasks_block_begin(&block, loop); /* so that it is known where it waits */
    timers_begin(loop, &t, 0, 0);
    timers_after(loop, &t, 0, 0);
}

/* ---- the end ---- */

TEST_EACH(life, stopping_drops_waiting_and_arriving_timers, 2)
{
    struct timers_noted waiting[2], coming[3];

    timers_begin(loop, &waiting[0], 30 * NS_PER_S, 0);
    timers_begin(loop, &waiting[1], 30 * NS_PER_S, MS(1));
    observe_until_asleep(loop); /* they have arrived */
    tasks_block_begin(&block, loop);
    for (int i = 0; i < 3; i++)
        timers_begin(loop, &coming[i], i == 0 ? 0 : 30 * NS_PER_S, i == 2 ? -MS(1) : 0);
    loop_stop(loop, 0, _i ? 5 * NS_PER_S : 0); /* arrived while it shuts down, or never */
    tasks_block_end(&block);
    loop_runner_join(loop);
    for (int i = 0; i < 3; i++) {
        ck_assert_uint_eq(atomic_load(&coming[i].run), 0);
        ck_assert_uint_eq(atomic_load(&coming[i].dropped), 1);
    }
    for (int i = 0; i < 2; i++) {
        ck_assert_uint_eq(atomic_load(&waiting[i].run), 0);
        ck_assert_uint_eq(atomic_load(&waiting[i].dropped), 1);
    }
}

TEST(life, a_timer_submitted_in_the_quiet_period_is_accepted_and_dropped)
{
    struct timers_noted t;

    loop_runner_stats(loop);
    loop_stop(loop, MS(1000), 10 * NS_PER_S);
    timers_begin(loop, &t, 30 * NS_PER_S, 0);
    loop_runner_join(loop);
    ck_assert_uint_eq(atomic_load(&t.run), 0);
    ck_assert_uint_eq(atomic_load(&t.dropped), 1);
}

/* ---- many ---- */

#define THREADS 4
#define EACH    300

static struct timers_noted crowd[THREADS][EACH];

static void *submit_crowd(void *arg)
{
    struct timers_noted *mine = arg;
    unsigned seed = (unsigned)(mine - crowd[0]);

    for (int i = 0; i < EACH; i++)
        timers_begin(loop, &mine[i], rand_r(&seed) % MS(10), 0);
    return NULL;
}

TEST(life, the_timers_of_many_threads_each_run_once_and_not_early)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, submit_crowd, crowd[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        for (int j = 0; j < EACH; j++)
            UNTIL(atomic_load(&crowd[i][j].run) == 1);
    loop_runner_stop(loop);
    for (int i = 0; i < THREADS; i++)
        for (int j = 0; j < EACH; j++) {
            struct timers_noted *t = &crowd[i][j];

            ck_assert_uint_eq(atomic_load(&t->run) + atomic_load(&t->dropped), 1);
            ck_assert_int_ge(t->began_at_ns[0], t->planned_at_ns[0]);
        }
}
