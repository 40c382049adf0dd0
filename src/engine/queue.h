/*
 * engine/queue: an intrusive lock-free queue of tasks: any number of producers, one consumer.
 *
 *   head -> task -> task -> ... -> task <- tail        consumer takes at head, producers add at tail
 *
 * A stub node takes the place of the last task, so that the queue is never without a node. FIFO for each
 * producer; the order among producers is the order of their exchanges on `tail`.
 *
 * note: half push. Between a producer's exchange of `tail` and its store to the predecessor's `next` the chain
 * is cut: what lies behind the cut is in the queue but cannot be reached yet. queue_pop() then returns NULL
 * although queue_empty() is false; the consumer comes back later instead of spinning.
 */
#ifndef ENGINE_QUEUE_H
#define ENGINE_QUEUE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/cache_line.h"
#include "engine/task.h"

struct queue {
    alignas(CACHE_LINE_BYTES) _Atomic(struct task *) tail; /* producers */
    alignas(CACHE_LINE_BYTES) struct task *head;           /* consumer */
    struct task stub;
};

/*
 * queue_init(q):
 * Make ${q} empty.
 *
 * Thread: before start
 * Errors: none
 */
void queue_init(struct queue *q);

/*
 * queue_push(q, t):
 * Add ${t} at the end.
 *
 * Thread: any
 * Owns:   the queue has ${t} until queue_pop() returns it
 * Errors: none
 * Source: D. Vyukov, "Intrusive MPSC node-based queue" (1024cores.net)
 */
void queue_push(struct queue *q, struct task *t);

/*
 * queue_pop(q):
 * Take the first task; NULL when there is none that can be reached now (see note: half push).
 *
 * Thread: consumer
 * Owns:   the caller has the task
 * Errors: none
 */
struct task *queue_pop(struct queue *q);

/*
 * queue_peek(q):
 * The task that queue_pop() would return next, as far as that can be seen now.
 *
 * Thread: consumer
 * Owns:   the queue keeps the task
 * Errors: NULL (none, or see note: half push)
 */
const struct task *queue_peek(const struct queue *q);

/*
 * queue_empty(q):
 * Has every pushed task been popped? Sequentially consistent, as the wake-up protocol needs it.
 *
 * Thread: consumer
 * Errors: none
 */
bool queue_empty(const struct queue *q);

#endif
