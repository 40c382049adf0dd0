/*
 * upstream/wait_queue: sessions that wait because every server of their group has as many
 * connections as it may have.
 *
 * First come, first served, whatever worker they are on: who finds others waiting waits behind
 * them. A place that becomes free is given away by the one who frees it: he picks the endpoint for
 * the first in the queue who can have one there, and tells that one's loop. The first cannot when
 * he has tried that endpoint in vain: then it is for those behind him.
 *
 * note: lock. The queue is what workers share that is more than atomics, so it has a lock, which is
 * taken only while somebody waits. Without anybody waiting it costs one load when a session ends.
 *
 * note: freed or joined. Who joins counts himself in and then looks for a free place; who frees a
 *                place does so and then
 * looks for somebody who waits. A sequentially consistent fence between the two, on both sides,
 * lets at least one of them see the other, so that nobody waits beside a free place.
 */
#ifndef UPSTREAM_WAIT_QUEUE_H
#define UPSTREAM_WAIT_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/must.h"
#include "engine/lock.h"
#include "upstream/balancer.h"

struct loop;
struct wait_ticket;

/*
 * The end of a wait, once, on the loop of the one who waited and never inside wait_queue_join():
 * ${e}, which is entered and his; or NULL and ${error}: -ETIMEDOUT, -ENOENT (as balancer_pick(),
 * for a walk that has tried some). The ticket is gone afterwards. When the last server goes down,
 * walks that have tried none go on waiting.
 */
typedef void wait_queue_done(void *cookie, struct endpoint *e, int error);

struct wait_queue {
    unsigned max; /* that may wait; 0: nobody waits */
    int64_t timeout_ns;
    atomic_uint n;
    struct lock lock;
    struct balancer *balancer; /* locked */
    struct list tickets;       /* locked */
};

/*
 * wait_queue_init(q, max, timeout_ns):
 * Nobody waits. wait_queue_use() comes next.
 *
 * Thread: before start
 * Units:  ns
 */
void wait_queue_init(struct wait_queue *q, unsigned max, int64_t timeout_ns);

/*
 * wait_queue_use(q, balancer):
 * Look for places with ${balancer} from now on. wait_queue_serve() is due then.
 *
 * Thread: any
 * Owns:   ${balancer} is borrowed; the one before is used no more when this returns
 */
void wait_queue_use(struct wait_queue *q, struct balancer *balancer);

/*
 * wait_queue_close(q):
 * Free what init made.
 *
 * Thread: when nobody waits and nobody will
 */
void wait_queue_close(struct wait_queue *q);

/*
 * wait_queue_length(q):
 * How many wait.
 *
 * Thread: any
 */
static inline unsigned wait_queue_length(const struct wait_queue *q)
{
    return atomic_load_explicit(&q->n, memory_order_relaxed);
}

/*
 * wait_queue_join(q, out, walk, done, cookie):
 * Wait for a place at an endpoint that ${walk} has not tried.
 *
 * Thread: a loop
 * Owns:   ${out} is the caller's until done() or wait_queue_leave(); ${walk} is borrowed as long,
 *         and used by any thread
 * Errors: 0; -ENOBUFS (as many wait as may); -ENOMEM
 */
int wait_queue_join(struct wait_queue *q, struct wait_ticket **out,
                    struct balancer_pick_state *walk, wait_queue_done *done,
                    void *cookie) NODISCARD;

/*
 * wait_queue_leave(t):
 * Wait no longer; done() is not called. A place that was given away just now goes to the next one.
 *
 * Thread: the loop that joined
 * Owns:   ${t} is gone
 */
void wait_queue_leave(struct wait_ticket *t);

/*
 * wait_queue_serve(q):
 * There may be a free place: give away what there is. To be called after endpoint_leave(), and when
 * an endpoint has become fit again.
 *
 * Thread: any
 */
void wait_queue_serve(struct wait_queue *q);

#endif
