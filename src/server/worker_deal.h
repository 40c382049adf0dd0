/*
 * server/worker_deal: give new clients to the workers, as the chooser says, while any has room.
 */
#ifndef SERVER_WORKER_DEAL_H
#define SERVER_WORKER_DEAL_H

#include <stdint.h>

#include "base/must.h"

struct loop_group;
struct session;

/*
 * worker_deal(workers, s):
 * Give ${s} to one of the workers; one that cannot start its thread leaves it to the next one.
 *
 * Thread: any
 * Owns:   as worker_hand_over()
 * Errors: as loop_submit()
 */
int worker_deal(struct loop_group *workers, struct session *s) NODISCARD;

/*
 * worker_deal_wait_ns(workers):
 * 0 if some worker can take a client. Else max_pending_tasks wait at each: how soon to look
 * again; this is logged every 10 s at most.
 *
 * Thread: any
 * Units:  ns
 */
int64_t worker_deal_wait_ns(const struct loop_group *workers);

#endif
