/*
 * support/executor_runner: an executor for a test.
 */
#ifndef SUPPORT_EXECUTOR_RUNNER_H
#define SUPPORT_EXECUTOR_RUNNER_H

#include "engine/executor.h"
#include "support/tasks.h"

/*
 * executor_runner_create(threads, max_pending_tasks):
 * An executor named "test" of pool 1, without a thread.
 *
 * Thread: the test's
 * Owns:   the caller owns it, until executor_runner_destroy()
 * Errors: none (the test fails)
 */
struct executor *executor_runner_create(unsigned threads, unsigned max_pending_tasks);

/*
 * executor_runner_end(e) / executor_runner_destroy(e):
 * Let it run what is queued and end; destroy does so, if need be, and frees it.
 *
 * Thread: the test's
 * Errors: none (the test fails)
 */
void executor_runner_end(struct executor *e);
void executor_runner_destroy(struct executor *e);

/*
 * executor_runner_block(e, b):
 * Keep one thread of ${e} inside a task from when this returns until tasks_block_end().
 *
 * Thread: the test's
 * Errors: none (the test fails)
 */
void executor_runner_block(struct executor *e, struct tasks_block *b);

/*
 * executor_runner_stats(e):
 * Its counters.
 *
 * Thread: any
 */
struct executor_stats executor_runner_stats(struct executor *e);

#endif
