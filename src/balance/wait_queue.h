/*
 * balance/wait_queue: queue of sessions while an upstream is full or paused.
 *
 * First come, first served, over all workers. A thread that frees a connection slot gives it to the
 * first session that has not tried the server yet, and notifies the session's loop.
 *
 * note: lock. A session takes the lock to join or leave the queue, and at its end if others wait.
 * Without waiters the end costs a fence and a load.
 *
 * note: freed or joined. A session joins, then looks for a free slot; an ending session frees its
 * slot, then looks for waiters. With a sequentially consistent fence between the two steps of
 * each, at least one sees the other.
 */
#ifndef BALANCE_WAIT_QUEUE_H
#define BALANCE_WAIT_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "balance/balancer.h"
#include "base/list.h"
#include "base/must.h"
#include "engine/lock.h"
#include "limits/hold.h"

struct loop;
struct wait_ticket;

/*
 * Called once at the end of a wait, on the loop that joined, never inside wait_queue_join(). ${e}
 * is the endpoint entered for the session; or NULL, with ${error} -ETIMEDOUT, or -ENOENT: no
 * untried server is left. (A session that has tried none waits on, even if all servers are down.)
 * The ticket is freed.
 */
typedef void wait_queue_done(void *cookie, struct endpoint *e, int error);

struct wait_queue {
    atomic_uint max; /* maximum length; 0: no waiting */
    _Atomic int64_t timeout_ns;
    /*
     * Closed while an administrator pauses the upstream: all sessions wait, and the next two
     * members replace `max` and `timeout_ns`.
     */
    struct hold hold;
    atomic_uint max_held;
    _Atomic int64_t held_until_ns;
    atomic_uint n;              /* waiting sessions */
    atomic_uint tickets_in_use; /* queued, or given a result */
    struct lock lock;
    struct balancer *balancer; /* under `lock` */
    struct list tickets;       /* under `lock` */
};

/*
 * wait_queue_init(q, max, timeout_ns):
 * Initialize an empty queue; call wait_queue_use() next.
 *
 * Thread: any, before ${q} is shared
 */
void wait_queue_init(struct wait_queue *q, unsigned max, int64_t timeout_ns);

/*
 * wait_queue_set(q, max, timeout_ns):
 * Change the limits for sessions that join from now on; waiting sessions keep their timeout.
 */
void wait_queue_set(struct wait_queue *q, unsigned max, int64_t timeout_ns);

/*
 * wait_queue_pause(q, max_held, until_ns):
 * Let all new sessions wait, ${max_held} at most. wait_queue_resume() and hold_allow() let sessions
 * go; call wait_queue_serve() next. Sessions, also those that waited before, time out
 * WAIT_QUEUE_RELEASE_NS after ${until_ns}, or after wait_queue_resume() if that is earlier.
 *
 * Thread: control loop, or main before start
 */
void wait_queue_pause(struct wait_queue *q, unsigned max_held, int64_t until_ns);

/* wait_queue_resume(q, now_ns): end the pause. Thread: control loop, or main when it has ended */
void wait_queue_resume(struct wait_queue *q, int64_t now_ns);

/* Time after a pause to serve the sessions that waited. */
#define WAIT_QUEUE_RELEASE_NS INT64_C(60000000000)

/*
 * wait_queue_use(q, balancer):
 * Pick with ${balancer} from now on. Call wait_queue_serve() next.
 *
 * Owns:   ${balancer} must live until the next call, or wait_queue_close()
 */
void wait_queue_use(struct wait_queue *q, struct balancer *balancer);

/*
 * wait_queue_close(q):
 * Release the resources of the empty ${q}.
 *
 * Thread: any, after the last session
 */
void wait_queue_close(struct wait_queue *q);

/*
 * wait_queue_length(q) / wait_queue_is_idle(q):
 * Number of waiting sessions / is no ticket in use? Then only a joining session can access ${q}.
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
 * Stop waiting; done() is not called. A slot already assigned goes to the next waiter.
 *
 * Thread: the loop that joined
 * Owns:   frees ${t}
 */
void wait_queue_leave(struct wait_ticket *t);

/*
 * wait_queue_serve(q):
 * Assign free slots to waiting sessions: after endpoint_leave(), or when an endpoint becomes fit.
 */
void wait_queue_serve(struct wait_queue *q);

#endif
