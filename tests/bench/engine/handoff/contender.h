/*
 * contender: a loop with a thread of its own that other threads hand jobs to; what the hand-off
 * rows compare. Each handoff_* program has one of by_reactord, by_hand and by_libuv linked in.
 * Failures are fatal (see common/die.h).
 */
#ifndef BENCH_CONTENDER_H
#define BENCH_CONTENDER_H

#include "engine/task.h"

/* Of one size for all, so that nobody gains by touching less memory. */
struct job {
    union {
        struct task task; /* by_reactord */
        struct job *next; /* the others */
    } link;
    void (*run)(struct job *job); /* on the loop; may hand its job on again */
};

struct contender;

/*
 * contender_start():
 * A loop that waits for jobs.
 */
struct contender *contender_start(void);

/*
 * contender_submit(c, job):
 * Have ${job} run on the loop, after those this thread gave before. Any thread.
 */
void contender_submit(struct contender *c, struct job *job);

/*
 * contender_stop(c):
 * End the loop, which has nothing left to run, and free it.
 */
void contender_stop(struct contender *c);

#endif
