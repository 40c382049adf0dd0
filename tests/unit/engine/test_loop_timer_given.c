/*
 * engine/loop, periodic timers that leave their loop in their own run: given to another loop,
 * scheduled anew, freed.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "base/clock.h"
#include "support/loop_runner.h"
#include "support/sanitized.h"
#include "support/suite.h"
#include "support/until.h"

#define LOOPS 2

#define GIFTS IF_SANITIZED(500, 5000)

struct given {
    struct timer timer;
    bool cancels; /* before it is given away */
    unsigned inside;
    unsigned gifts;
    sem_t entered; /* the run on the second loop */
    sem_t released;
    unsigned runs[LOOPS];
};

static struct loop *loops[LOOPS];
static sem_t done;

static void setup(void)
{
    for (unsigned i = 0; i < LOOPS; i++)
        loops[i] = loop_runner_create();
    sem_init(&done, 0, 0);
}

static void teardown(void)
{
    for (unsigned i = 0; i < LOOPS; i++)
        loop_runner_destroy(loops[i]);
}

static void wait_for(sem_t *sem)
{
    while (sem_wait(sem) < 0)
        ; /* a signal came first */
}

static void never_dropped(struct task *t)
{
    ck_abort_msg("dropped: %s", t->type->name);
}

static struct given *given_of(struct task *t)
{
    return TIMER_OWNER(t, struct given, timer);
}

static unsigned here(void)
{
    return loop_current() == loops[1];
}

/* Begin ${g} on the first loop: from outside, or on the loop itself. */
static void schedule(void *arg)
{
    loop_schedule_every(loops[0], arg, 0, NS_PER_MS);
}

static void begin(struct given *g, const struct task_type *type, bool from_outside)
{
    timer_init(&g->timer, type);
    sem_init(&g->entered, 0, 0);
    sem_init(&g->released, 0, 0);
    if (from_outside)
        ck_assert_int_eq(loop_submit_after(loops[0], &g->timer, 0, NS_PER_MS), 0);
    else
        loop_runner_call(loops[0], schedule, &g->timer);
}

/* ---- given to another loop ---- */

static void give(struct given *g)
{
    if (g->cancels || g->gifts > 1) /* the first may be kept by the thread that scheduled it */
        loop_cancel(loop_current(), &g->timer);
    ck_assert_int_eq(loop_submit_after(loops[!here()], &g->timer, 0, NS_PER_MS), 0);
}

static void run_and_overlap(struct task *t)
{
    struct given *g = given_of(t);

    g->runs[here()]++;
    if (here() == 0) {
        give(g);
        wait_for(&g->entered);
        return;
    }
    sem_post(&g->entered);
    wait_for(&g->released);
    loop_cancel(loops[1], &g->timer);
    sem_post(&done);
}

GROUP(given, setup, teardown);

/* The first run returns while the second one is under way on the other loop. */
TEST_EACH(given, periodic_timer_submitted_to_another_loop_does_not_run_here_again, 2)
{
    static const struct task_type type = {"overlaps", run_and_overlap, never_dropped};
    struct given g = {.cancels = true};

    begin(&g, &type, _i);
    UNTIL(loop_runner_stats(loops[0]).tasks_run >= 1);
    PAUSE_MS(5); /* longer than its period */
    loop_runner_turn(loops[0]);
    sem_post(&g.released);
    wait_for(&done);
    loop_runner_stop(loops[0]);
    loop_runner_stop(loops[1]);
    ck_assert_uint_eq(g.runs[0], 1);
    ck_assert_uint_eq(g.runs[1], 1);
}

static void run_and_give(struct task *t)
{
    struct given *g = given_of(t);

    if (g->inside++ > 0)
        ck_abort_msg("runs on two loops at a time");
    g->inside--;
    if (++g->gifts < GIFTS) {
        give(g);
        return;
    }
    loop_cancel(loop_current(), &g->timer);
    sem_post(&done);
}

/* Begun on the loop or from outside; in the third case the first gift is not cancelled before. */
TEST_EACH(given, two_loops_submit_a_timer_to_each_other, 3)
{
    static const struct task_type type = {"given", run_and_give, never_dropped};
    struct given g = {.cancels = _i < 2};

    begin(&g, &type, _i == 1);
    wait_for(&done);
    loop_runner_stop(loops[0]);
    loop_runner_stop(loops[1]);
    ck_assert_uint_eq(g.gifts, GIFTS);
}

/* ---- given to a thread ---- */

static sem_t freed;
static struct given *to_free;

static void *free_given(void *arg)
{
    (void)arg;
    wait_for(&done);
    to_free->timer.period_ns = NS_PER_MS; /* a thread may use it for something else first */
    free(to_free);
    sem_post(&freed);
    return NULL;
}

static void run_and_leave(struct task *t)
{
    loop_cancel(loop_current(), &given_of(t)->timer);
    sem_post(&done);
    wait_for(&freed);
}

TEST_EACH(given, timer_cancelled_in_its_run_may_be_freed_by_another_thread_at_once, 2)
{
    static const struct task_type type = {"leaves", run_and_leave, never_dropped};
    pthread_t thread;

    sem_init(&freed, 0, 0);
    to_free = calloc(1, sizeof(*to_free));
    ck_assert_ptr_nonnull(to_free);
    pthread_create(&thread, NULL, free_given, NULL);
    begin(to_free, &type, _i);
    pthread_join(thread, NULL);
    loop_runner_turn(loops[0]);
}

static void run_and_free(struct task *t)
{
    loop_cancel(loop_current(), &given_of(t)->timer);
    free(given_of(t));
    sem_post(&done);
}

TEST_EACH(given, timer_cancelled_in_its_run_may_free_itself, 2)
{
    static const struct task_type type = {"frees itself", run_and_free, never_dropped};
    struct given *g = calloc(1, sizeof(*g));

    ck_assert_ptr_nonnull(g);
    begin(g, &type, _i);
    wait_for(&done);
    loop_runner_turn(loops[0]);
}

/* ---- scheduled anew ---- */

static void run_and_slow_down(struct task *t)
{
    struct given *g = given_of(t);

    if (g->runs[0]++ > 0)
        return;
    loop_cancel(loop_current(), &g->timer);
    loop_schedule_every(loop_current(), &g->timer, 3600 * NS_PER_S, 3600 * NS_PER_S);
    sem_post(&done);
}

static void cancel(void *arg)
{
    struct given *g = arg;

    ck_assert_int_eq(g->timer.period_ns, 3600 * NS_PER_S);
    ck_assert_int_gt(g->timer.at_ns, clock_now_ns() + 1800 * NS_PER_S);
    loop_cancel(loops[0], &g->timer);
}

TEST_EACH(given, timer_rescheduled_in_its_run_keeps_the_new_instant, 2)
{
    static const struct task_type type = {"slows down", run_and_slow_down, never_dropped};
    struct given g = {.gifts = 0};

    begin(&g, &type, _i);
    wait_for(&done);
    PAUSE_MS(5);
    loop_runner_call(loops[0], cancel, &g);
    loop_runner_stop(loops[0]);
    ck_assert_uint_eq(g.runs[0], 1);
}
