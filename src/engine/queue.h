/*
 * engine/queue: an intrusive lock-free queue of tasks: any number of producers, one consumer.
 *
 *   newest -> task -> ... -> task        producers put theirs in front
 *   first  -> task -> ... -> task        the consumer has taken all of them at once and turned them
 *          round
 *
 * FIFO in the order of the compare-and-swaps on `newest`, so also for each producer. A push writes
 * to its own task and to that one word, never to a task that another thread may be looking at; and
 * the consumer comes to the word once a batch. That is what counts: with a queue that links each
 * task to its predecessor (D. Vyukov's) the hand-off took twice as long.
 *
 * Taking is an exchange for NULL, so it does not matter whether a `newest` that a producer has seen
 * was taken, and pushed again, before its compare-and-swap succeeds: its task then stands in front
 * of just that one.
 */
#ifndef ENGINE_QUEUE_H
#define ENGINE_QUEUE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cache_line.h"
#include "engine/gate.h"
#include "engine/task.h"

struct queue {
    alignas(CACHE_LINE_BYTES) _Atomic(struct task *) newest; /* producers */
    struct gate gate;                             /* of the lane: a submit writes to both words */
    alignas(CACHE_LINE_BYTES) struct task *first; /* consumer */
};

/*
 * queue_init(q):
 * Make ${q} empty.
 *
 * Thread: before start
 */
void queue_init(struct queue *q);

/*
 * queue_push(q, t):
 * Add ${t} at the end.
 *
 * Thread: any
 * Owns:   the queue has ${t} until queue_pop() returns it
 * Source: R. K. Treiber, "Systems Programming: Coping with Parallelism" (1986); Linux
 *         include/linux/llist.h
 */
static inline void queue_push(struct queue *q, struct task *t)
{
    struct task *before = atomic_load_explicit(&q->newest, memory_order_relaxed);

    /*
     * Sequentially consistent: the first half of the wake-up protocol (note: wake-up in
     * engine/wakeup.h).
     */
    do
        atomic_store_explicit(&t->next, before, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&q->newest, &before, t));
}

/*
 * queue_take(q):
 * Let queue_pop() have what was pushed until now, unless it still has some from before.
 *
 * Thread: consumer
 */
void queue_take(struct queue *q);

/*
 * queue_pop(q) / queue_peek(q):
 * Take, or look at, the first of the tasks that were taken; NULL when there is none left.
 *
 * Thread: consumer
 * Owns:   the caller has the task; nothing
 */
static inline struct task *queue_pop(struct queue *q)
{
    struct task *t = q->first;

    if (t)
        q->first = atomic_load_explicit(&t->next, memory_order_relaxed);
    return t;
}

static inline const struct task *queue_peek(const struct queue *q)
{
    return q->first;
}

/*
 * queue_empty(q):
 * Has every pushed task been popped? Sequentially consistent, as the wake-up protocol needs it.
 *
 * Thread: consumer
 */
static inline bool queue_empty(const struct queue *q)
{
    return !q->first && !atomic_load(&q->newest);
}

#endif
