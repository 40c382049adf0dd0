/*
 * engine/loop, the race of timers with their withdrawal: run or dropped, as loop_withdraw() said,
 * and once.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <ucontext.h>

#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/rounds.h"
#include "support/sanitized.h"
#include "support/suite.h"
#include "support/tasks.h"
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

#define RACES IF_SANITIZED(20, 100)

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

GROUP_WITHIN(race, setup, teardown, 300); /* a million traps: ten seconds of processor time */

TEST(race, timer_that_races_with_its_withdrawal_is_run_or_dropped_as_returned)
{
    pthread_barrier_init(&start, NULL, CALLERS + 1);
    EACH_ROUND(round, RACES)
    {
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

TEST(race, timer_that_races_with_a_withdrawal_and_the_end_is_run_or_dropped_once)
{
    pthread_barrier_init(&start, NULL, CALLERS + 1);
    EACH_ROUND(round, RACES)
    {
        race_once(round, true);
        loop_runner_join(loop);
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

/*
 * ---- each instruction ----
 *
 * A load and a store in place of the exchange leave a gap that two threads hardly ever hit. Here
 * the processor stops behind each instruction in turn (trap flag), and the signal handler withdraws
 * the timer there.
 */

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)

#define FLAG_TRAP 0x100UL /* x86: SIGTRAP behind each instruction */

static struct timers_noted first, second;
static volatile unsigned steps_left;
static volatile bool was_early, early_said, late_said;

static void begin_steps(unsigned n)
{
    steps_left = n;
    was_early = early_said = false;
    __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | FLAG_TRAP);
}

static void end_steps(void)
{
    __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() & ~FLAG_TRAP);
}

/* Behind the last step: withdraw the second timer, as another thread might just there. */
static void on_step(int number, siginfo_t *info, void *context)
{
    ucontext_t *at = context;

    (void)number;
    (void)info;
    if (steps_left-- > 0)
        return;
    at->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)FLAG_TRAP;
    was_early = true;
    early_said = loop_withdraw(loop, &second.timer);
}

static void catch_steps(void)
{
    struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};

    ck_assert_int_eq(sigaction(SIGTRAP, &action, NULL), 0);
}

static void withdraw_in_steps(void *arg)
{
    begin_steps(*(unsigned *)arg);
    late_said = loop_withdraw(loop, &second.timer);
    end_steps();
}

/* 0: it is on its way to the loop; 1: it waits there. */
TEST_EACH(race, one_of_two_interleaved_withdrawals_succeeds, 2)
{
    unsigned n = 0;

    catch_steps();
    do {
        struct loop_stats stats = loop_runner_stats(loop);
        struct tasks_block block;

        timers_noted_init(&second);
        if (_i == 0)
            tasks_block_begin(&block, loop);
        ck_assert_int_eq(loop_submit_after(loop, &second.timer, 3600 * NS_PER_S, 0), 0);
        if (_i == 0) {
            withdraw_in_steps(&n);
            tasks_block_end(&block);
        } else {
            UNTIL((loop_stats(loop, &stats), stats.tasks_pending == 0));
            loop_runner_call(loop, withdraw_in_steps, &n);
        }
        ck_assert_int_eq(early_said + late_said, 1);
        loop_runner_stats(loop);
        UNTIL(atomic_load(&second.dropped) == 1);
        n++;
    } while (was_early);
    ck_assert_uint_gt(n, 20);
}

static void first_run(struct task *t)
{
    (void)t;
    begin_steps(first.last_run);
}

static void submit_both(void *arg)
{
    static const struct task_type type = {.name = "first", .run = first_run};

    timers_noted_init(&first);
    timer_init(&first.timer, &type);
    first.last_run = *(unsigned *)arg; /* steps */
    timers_noted_init(&second);
    ck_assert_int_eq(loop_submit_after(loop, &first.timer, 0, 0), 0);
    ck_assert_int_eq(loop_submit_after(loop, &second.timer, 0, 0), 0);
}

/*
 * The steps begin in the run of the first timer, which is due together with it, and end in its own.
 */
TEST(race, timer_is_run_or_withdrawn_at_each_interleaving)
{
    unsigned n = 0, n_dropped = 0;

    catch_steps();
    do {
        loop_runner_call(loop, submit_both, &n);
        UNTIL(race_end_of(&second) > 0 && was_early);
        loop_runner_stats(loop);
        ck_assert_uint_eq(atomic_load(&second.dropped), early_said);
        ck_assert_uint_eq(atomic_load(&second.run), !early_said);
        n_dropped += early_said;
        n++;
    } while (early_said);
    ck_assert_uint_gt(n_dropped, 20);
}

#endif
