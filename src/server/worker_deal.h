/* server/worker_deal: assigns new clients to workers with the chooser. */
#ifndef SERVER_WORKER_DEAL_H
#define SERVER_WORKER_DEAL_H

#include <stdint.h>

#include "base/must.h"

struct loop_group;
struct session;

/*
 * worker_deal(workers, s):
 * Give ${s} to a worker; if its thread cannot be started, try the next.
 *
 * Thread: any
 * Owns:   as worker_hand_over()
 * Errors: as loop_submit()
 */
int worker_deal(struct loop_group *workers, struct session *s) NODISCARD;

/*
 * worker_deal_wait_ns(workers):
 * 0, or when every worker has max_pending_tasks queued the time until the next try; logged every 10
 * s at most.
 *
 * Thread: any
 * Units:  ns
 */
int64_t worker_deal_wait_ns(const struct loop_group *workers);

#endif
