/*
 * upstream/wait_queue: queue of sessions while all servers of their group are full, or the upstream
 * is paused.
 *
 * First come, first served, over all workers. A thread that frees a connection slot gives it to the
 * first session that has not failed there, and notifies the session's loop.
 *
 * note: lock. Workers share the queue under a lock, taken only while sessions wait; without waiters
 * a session's end costs one load.
 *
 * note: freed or joined. A session joins, then looks for a free slot; an ending session frees its
 * slot, then looks for waiters. With a sequentially consistent fence between the steps, at least
 * one sees the other.
 */
#ifndef UPSTREAM_WAIT_QUEUE_H
#define UPSTREAM_WAIT_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/must.h"
#include "engine/lock.h"
#include "limits/hold.h"
#include "upstream/balancer.h"

struct loop;
struct wait_ticket;

/*
 * Called once at the end of a wait, on the loop that joined, never inside wait_queue_join(). ${e}:
 * entered for the session; or NULL, with ${error} -ETIMEDOUT, or -ENOENT of balancer_pick() if the
 * session has tried servers. (A session that has tried none waits on, even if all servers are
 * down.) The ticket is freed.
 */
typedef void wait_queue_done(void *cookie, struct endpoint *e, int error);

struct wait_queue {
    atomic_uint max; /* maximum length; 0: no waiting */
    _Atomic int64_t timeout_ns;
    /*
     * Closed while an administrator pauses the upstream: then all sessions wait, within the two
     * limits below.
     */
    struct hold hold;
    atomic_uint max_held;
    _Atomic int64_t held_until_ns;
    atomic_uint n;
    atomic_uint tickets_in_use; /* queued, or given a result */
    struct lock lock;
    struct balancer *balancer; /* locked */
    struct list tickets;       /* locked */
};

/*
 * wait_queue_init(q, max, timeout_ns):
 * Initialize an empty queue; call wait_queue_use() next.
 *
 * Thread: any, before other threads can use ${q}
 */
void wait_queue_init(struct wait_queue *q, unsigned max, int64_t timeout_ns);

/*
 * wait_queue_set(q, max, timeout_ns):
 * Change the limits for sessions that join later; waiting sessions keep their timeout.
 *
 * Thread: any
 */
void wait_queue_set(struct wait_queue *q, unsigned max, int64_t timeout_ns);

/*
 * wait_queue_pause(q, max_held, until_ns):
 * Let sessions wait, ${max_held} at most, until hold_open() or hold_allow(); then call
 * wait_queue_serve(). Sessions not served WAIT_QUEUE_RELEASE_NS after ${until_ns} give up.
 *
 * Thread: control loop, or main before start
 */
void wait_queue_pause(struct wait_queue *q, unsigned max_held, int64_t until_ns);

/* Time to serve the sessions that a pause held. */
#define WAIT_QUEUE_RELEASE_NS INT64_C(60000000000)

/*
 * wait_queue_use(q, balancer):
 * Pick with ${balancer} from now on. Call wait_queue_serve() next.
 *
 * Thread: any
 * Owns:   ${balancer} must live until the next call, or wait_queue_close()
 */
void wait_queue_use(struct wait_queue *q, struct balancer *balancer);

/*
 * wait_queue_close(q):
 * Release the resources of ${q}.
 *
 * Thread: any, after the last session
 */
void wait_queue_close(struct wait_queue *q);

/*
 * wait_queue_length(q) / wait_queue_is_idle(q):
 * Number of waiting sessions / is no ticket in use, so that nothing accesses ${q} unless a session
 * joins?
 *
 * Thread: any
 */
static inline unsigned wait_queue_length(const struct wait_queue *q)
{
    return atomic_load_explicit(&q->n, memory_order_relaxed);
}

static inline bool wait_queue_is_idle(const struct wait_queue *q)
{
    return atomic_load_explicit(&q->tickets_in_use, memory_order_acquire) == 0;
}

/*
 * wait_queue_join(q, out, pick, done, cookie):
 * Wait for an endpoint that ${pick} has not tried.
 *
 * Thread: a loop
 * Owns:   ${pick} must live until done() or wait_queue_leave(); any thread uses it
 * Errors: 0; -ENOBUFS (queue full); -ENOMEM
 */
int wait_queue_join(struct wait_queue *q, struct wait_ticket **out,
                    struct balancer_pick_state *pick, wait_queue_done *done,
                    void *cookie) NODISCARD;

/*
 * wait_queue_leave(t):
 * Stop waiting, without done(). A slot already assigned goes to the next waiter.
 *
 * Thread: the loop that joined
 * Owns:   frees ${t}
 */
void wait_queue_leave(struct wait_ticket *t);

/*
 * wait_queue_serve(q):
 * Assign free slots. Call it after endpoint_leave() and when an endpoint becomes fit.
 *
 * Thread: any
 */
void wait_queue_serve(struct wait_queue *q);

#endif
