/*
 * engine/queue: intrusive lock-free multi-producer, single-consumer (MPSC) task queue.
 *
 *   newest -> task -> ... -> task        producers push in front
 *   first  -> task -> ... -> task        the consumer took all at once and reversed them
 *
 * FIFO. A push writes only its own task and `newest`, which the consumer accesses once per batch.
 *
 * No ABA problem: the task that a producer read from `newest` may be popped and pushed again. It is
 * then the newest task again, and the push in front of it is right.
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
    alignas(CACHE_LINE_BYTES) _Atomic(struct task *) newest; /* producers push here */
    struct gate gate; /* in the cache line of `newest`: a submit writes both */
    alignas(CACHE_LINE_BYTES) struct task *first; /* consumer only */
};

/* queue_init(q): initialize an empty queue. Thread: any, before other threads use ${q} */
void queue_init(struct queue *q);

/*
 * queue_push(q, t):
 * Append ${t}.
 *
 * Owns:   ${t} belongs to the queue until queue_pop() returns it
 * Source: R. K. Treiber, "Systems Programming: Coping with Parallelism" (1986); Linux
 *         include/linux/llist.h
 */
static inline void queue_push(struct queue *q, struct task *t)
{
    struct task *before = atomic_load_explicit(&q->newest, memory_order_relaxed);

    /* Sequentially consistent: see note: wake-up in engine/wakeup.h. */
    do
        atomic_store_explicit(&t->next, before, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&q->newest, &before, t));
}

/*
 * queue_take(q):
 * If queue_pop() has no tasks left, make all pushed tasks available to it.
 *
 * Thread: consumer
 */
void queue_take(struct queue *q);

/*
 * queue_pop(q) / queue_peek(q):
 * Remove / only return the first task made available, or NULL.
 *
 * Thread: consumer
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
 * Were all pushed tasks popped? Sequentially consistent (note: wake-up).
 *
 * Thread: consumer
 */
static inline bool queue_empty(const struct queue *q)
{
    return !q->first && !atomic_load(&q->newest);
}

#endif
