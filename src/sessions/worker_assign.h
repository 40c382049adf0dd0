/* sessions/worker_assign: assigns new clients to workers with the chooser. */
#ifndef SESSIONS_WORKER_ASSIGN_H
#define SESSIONS_WORKER_ASSIGN_H

#include <stdint.h>

#include "base/must.h"

struct loop_group;
struct session;

/*
 * worker_assign(workers, s) / worker_assign_why(error):
 * Give ${s} to a worker; if that fails, try the next worker. A worker that accepts keeps its
 * client, unless another has clearly fewer (loop_group_near()) / describe ${error} in words.
 *
 * Owns:   as worker_hand_over()
 * Errors: as loop_submit()
 */
int worker_assign(struct loop_group *workers, struct session *s) NODISCARD;
const char *worker_assign_why(int error);

/*
 * worker_assign_wait_ns(workers):
 * Return 0; or, if all workers have max_pending_tasks queued, log that and return the time to wait.
 */
int64_t worker_assign_wait_ns(const struct loop_group *workers);

#endif
