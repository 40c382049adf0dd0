/*
 * support/timers: timers that tell what became of them.
 */
#ifndef SUPPORT_TIMERS_H
#define SUPPORT_TIMERS_H

#include <semaphore.h>
#include <stdatomic.h>

#include "engine/loop.h"

#define TIMERS_NOTES 8

/* Notes when it ran, and how often it was run and dropped. */
struct timers_noted {
    struct timer timer;
    int64_t work_ns;                     /* keeps the loop busy so long, in its first run */
    unsigned last_run;                   /* cancels itself in this run; 0: never */
    int64_t planned_at_ns[TIMERS_NOTES]; /* its instant in each of the first runs */
    int64_t began_at_ns[TIMERS_NOTES];
    atomic_uint run;
    atomic_uint dropped;
    atomic_bool broken; /* it ran after it was dropped, or was dropped twice */
};

/* Keeps the loop inside its run until it is told to go on. */
struct timers_block {
    struct timer timer;
    sem_t entered;
    sem_t released;
    atomic_uint run;
    atomic_uint dropped;
};

/*
 * timers_noted_init(t) / timers_block_init(t):
 * A fresh timer.
 *
 * Thread: the test's
 */
void timers_noted_init(struct timers_noted *t);
void timers_block_init(struct timers_block *t);

/*
 * timers_after(loop, t, delay_ns, period_ns) / timers_begin(loop, t, delay_ns, period_ns):
 * loop_submit_after(); for a fresh one.
 *
 * Thread: any
 * Errors: the test fails
 */
void timers_after(struct loop *loop, struct timers_noted *t, int64_t delay_ns, int64_t period_ns);
void timers_begin(struct loop *loop, struct timers_noted *t, int64_t delay_ns, int64_t period_ns);

/*
 * timers_expect_run(loop):
 * See that a timer of ${loop} is run, and not early.
 *
 * Thread: any but the loop's
 * Errors: the test fails
 */
void timers_expect_run(struct loop *loop);

/*
 * timers_block_wait(t) / timers_block_end(t):
 * Wait until it runs; let its run end.
 *
 * Thread: any but the loop's
 */
void timers_block_wait(struct timers_block *t);
void timers_block_end(struct timers_block *t);

#endif
