#include "engine/queue.h"

void queue_init(struct queue *q)
{
    atomic_init(&q->newest, NULL);
    gate_init(&q->gate);
    q->first = NULL;
}

void queue_take(struct queue *q)
{
    struct task *t;

    /* Load first, because an exchange takes the cache line from the producers. */
    if (q->first || !atomic_load_explicit(&q->newest, memory_order_relaxed))
        return;
    /* Acquire: see what producers wrote to their tasks. */
    t = atomic_exchange_explicit(&q->newest, NULL, memory_order_acquire);
    while (t) {
        struct task *before = atomic_load_explicit(&t->next, memory_order_relaxed);

        atomic_store_explicit(&t->next, q->first, memory_order_relaxed);
        q->first = t;
        t = before;
    }
}
