/*
 * support/loop_runner: a loop for a test, and a way to do something on its thread.
 */
#ifndef SUPPORT_LOOP_RUNNER_H
#define SUPPORT_LOOP_RUNNER_H

#include "engine/loop_group.h"

/*
 * loop_runner_create() / loop_runner_create_with(budget, max_pending_tasks):
 * A loop named "test" without a thread: io_ratio 50, a quantum of 100 ms and space for 65536 tasks,
 * or as told.
 *
 * Thread: the test's
 * Owns:   the caller owns it, until loop_runner_destroy()
 * Errors: none (the test fails)
 */
struct loop *loop_runner_create(void);
struct loop *loop_runner_create_with(struct budget_conf budget, unsigned max_pending_tasks);

/*
 * loop_runner_call(loop, function, arg):
 * Call ${function} on the loop, in its control queue, and wait until it has returned.
 *
 * Thread: any but the loop's
 * Errors: none (the test fails)
 */
void loop_runner_call(struct loop *loop, void (*function)(void *arg), void *arg);

/*
 * loop_runner_turn(loop):
 * Wait until it has gone round once more. libev takes a stopped descriptor out of epoll a turn
 * later; until then it must not be closed by the test.
 *
 * Thread: any but the loop's
 * Errors: none (the test fails)
 */
void loop_runner_turn(struct loop *loop);

/*
 * loop_runner_join(loop) / loop_runner_join_group(g):
 * Wait for the end of a loop / of all loops of a group.
 *
 * Thread: any but a loop
 */
void loop_runner_join(struct loop *loop);
void loop_runner_join_group(struct loop_group *g);

/*
 * loop_runner_stop(loop) / loop_runner_destroy(loop):
 * End the loop at once and wait for it; destroy does so if need be, and frees it.
 *
 * Thread: the test's
 */
void loop_runner_stop(struct loop *loop);
void loop_runner_destroy(struct loop *loop);

/*
 * loop_runner_stats(loop):
 * Its counters, read on the loop between two tasks.
 *
 * Thread: any but the loop's
 * Errors: none (the test fails)
 */
struct loop_stats loop_runner_stats(struct loop *loop);

#endif
