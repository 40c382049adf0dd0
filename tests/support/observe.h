/*
 * support/observe: what can be seen of a loop from outside.
 */
#ifndef SUPPORT_OBSERVE_H
#define SUPPORT_OBSERVE_H

#include "engine/loop.h"

/*
 * observe_stats(loop):
 * Its counters now, without disturbing it.
 *
 * Thread: any
 */
struct loop_stats observe_stats(const struct loop *loop);

/*
 * observe_until_asleep(loop):
 * Have it make a turn and wait until it sleeps, having done all that was to be done. Its counters
 * then.
 *
 * Thread: any but the loop's
 * Errors: none (the test fails)
 */
struct loop_stats observe_until_asleep(struct loop *loop);

/*
 * observe_until_idle(loop):
 * Wait until no task waits and it polls, without waking it.
 *
 * Thread: any but the loop's
 * Errors: none (the test fails)
 */
void observe_until_idle(const struct loop *loop);

#endif
