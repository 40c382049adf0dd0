/*
 * support/race: threads that submit tasks while the test stops what they submit to.
 */
#ifndef SUPPORT_RACE_H
#define SUPPORT_RACE_H

#include "support/tasks.h"

#define RACE_THREADS 4
#define RACE_TASKS   50 /* of each thread */

/* What became of the tasks of all threads. */
struct race_outcome {
    unsigned run;
    unsigned dropped;
    unsigned refused;
};

/*
 * race_begin(submit):
 * Start threads that call ${submit} for their tasks, numbered from 0, all at the same time.
 *
 * Thread: the test's
 * Errors: the test fails
 */
void race_begin(int (*submit)(unsigned number, struct task *t));

/*
 * race_spin(round):
 * Wait for a moment, another one in each round.
 *
 * Thread: the test's
 */
void race_spin(unsigned round);

/*
 * race_join():
 * Wait until all threads have submitted all.
 *
 * Thread: the test's
 */
void race_join(void);

/*
 * race_check():
 * See that each task was run or dropped, and once, or was refused with -ESHUTDOWN or -EAGAIN.
 *
 * Thread: the test's, when no task can be run or dropped any more
 * Errors: the test fails
 */
struct race_outcome race_check(void);

#endif
