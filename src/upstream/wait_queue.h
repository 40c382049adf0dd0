/*
 * upstream/wait_queue: queue of sessions while all servers of their group are full.
 *
 * First come, first served, over all workers. The thread that frees a place gives it to the first
 * session that has not tried the endpoint in vain, and notifies its loop.
 *
 * note: lock. Workers share the queue under a lock, taken only while sessions wait; else a
 * session's end costs one load.
 *
 * note: freed or joined. A session joins, then looks for a free place; an ending session frees its
 * place, then looks for waiters. Sequentially consistent fences between the steps let at least one
 * see the other.
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
 * Ends a wait, once, on the loop that joined, never inside wait_queue_join(): ${e}, entered for the
 * session; or NULL and ${error}: -ETIMEDOUT, or -ENOENT as balancer_pick() if it has tried servers.
 * (With none tried it waits on, even if all are down.) The ticket is freed.
 */
typedef void wait_queue_done(void *cookie, struct endpoint *e, int error);

struct wait_queue {
    unsigned max; /* maximum length; 0: no waiting */
    int64_t timeout_ns;
    atomic_uint n;
    struct lock lock;
    struct balancer *balancer; /* locked */
    struct list tickets;       /* locked */
};

/*
 * wait_queue_init(q, max, timeout_ns):
 * Initialize an empty queue; call wait_queue_use() next.
 *
 * Thread: before start
 */
void wait_queue_init(struct wait_queue *q, unsigned max, int64_t timeout_ns);

/*
 * wait_queue_use(q, balancer):
 * Pick with ${balancer} from now on. Call wait_queue_serve() next.
 *
 * Thread: any
 * Owns:   ${balancer} is borrowed; the previous one is no longer used
 */
void wait_queue_use(struct wait_queue *q, struct balancer *balancer);

/*
 * wait_queue_close(q):
 * Release its resources.
 *
 * Thread: when no waiter is left, and none can come
 */
void wait_queue_close(struct wait_queue *q);

/*
 * wait_queue_length(q):
 * Number of waiting sessions.
 *
 * Thread: any
 */
static inline unsigned wait_queue_length(const struct wait_queue *q)
{
    return atomic_load_explicit(&q->n, memory_order_relaxed);
}

/*
 * wait_queue_join(q, out, pick, done, cookie):
 * Wait for an endpoint that ${pick} has not tried.
 *
 * Thread: a loop
 * Owns:   until done() or wait_queue_leave(), ${pick} is borrowed, for any thread
 * Errors: 0; -ENOBUFS (queue full); -ENOMEM
 */
int wait_queue_join(struct wait_queue *q, struct wait_ticket **out,
                    struct balancer_pick_state *pick, wait_queue_done *done,
                    void *cookie) NODISCARD;

/*
 * wait_queue_leave(t):
 * Stop waiting, without done(). A place already assigned goes to the next waiter.
 *
 * Thread: the loop that joined
 * Owns:   frees ${t}
 */
void wait_queue_leave(struct wait_ticket *t);

/*
 * wait_queue_serve(q):
 * Assign free places. Call it after endpoint_leave() and when an endpoint becomes fit.
 *
 * Thread: any
 */
void wait_queue_serve(struct wait_queue *q);

#endif
