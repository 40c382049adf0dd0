/* engine/loop, the race of timers with their withdrawal: run or dropped, as loop_withdraw() said, and once. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/suite.h"
#include "support/timers.h"
#include "support/until.h"

static struct loop *loop;

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_WARNING);
    loop = loop_runner_create();
}

static void teardown(void)
{
    loop_runner_destroy(loop);
}

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

        atomic_fetch_add(&n_withdrawn[which], loop_withdraw(loop, &racing[which].timer));
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
        ck_assert_int_eq(loop_submit_after(loop, &racing[i].timer, rand_r(&seed) % max_ns,
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
    Suite *suite = suite_create("engine/loop_withdraw_race");
    TCase *race = suite_group(suite, "race");

    tcase_add_checked_fixture(race, setup, teardown);
    tcase_add_test(race, a_timer_that_races_with_its_withdrawal_is_run_or_dropped_as_withdraw_said);
    tcase_add_test(race, so_it_is_when_the_loop_ends_meanwhile);
    return suite_run(suite);
}
