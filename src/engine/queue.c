/* engine/queue: see queue.h. */
#include "engine/queue.h"

#include <stddef.h>

void queue_init(struct queue *q)
{
    atomic_init(&q->stub.next, NULL);
    atomic_init(&q->tail, &q->stub);
    q->stub.type = NULL;
    q->stub.queued_at_ns = 0;
    q->head = &q->stub;
}

void queue_push(struct queue *q, struct task *t)
{
    struct task *prev;

    atomic_store_explicit(&t->next, NULL, memory_order_relaxed);
    /* Sequentially consistent: the first half of the wake-up protocol (note: wake-up in engine/wakeup.h). */
    prev = atomic_exchange(&q->tail, t);
    /* Release: whoever reaches ${t} through the chain sees what its producer wrote. */
    atomic_store_explicit(&prev->next, t, memory_order_release);
}

struct task *queue_pop(struct queue *q)
{
    struct task *head = q->head;
    struct task *next = atomic_load_explicit(&head->next, memory_order_acquire);

    if (head == &q->stub) {
        if (!next)
            return NULL; /* empty, or see note: half push */
        q->head = next;
        head = next;
        next = atomic_load_explicit(&head->next, memory_order_acquire);
    }
    if (!next) {
        /* The last one can only be taken when another node stands behind it: the stub. */
        if (atomic_load_explicit(&q->tail, memory_order_acquire) != head)
            return NULL; /* see note: half push */
        queue_push(q, &q->stub);
        next = atomic_load_explicit(&head->next, memory_order_acquire);
        if (!next)
            return NULL; /* a producer came in between; see note: half push */
    }
    q->head = next;
    return head;
}

const struct task *queue_peek(const struct queue *q)
{
    if (q->head != &q->stub)
        return q->head;
    return atomic_load_explicit(&q->stub.next, memory_order_acquire);
}

bool queue_empty(const struct queue *q)
{
    /* With nothing left the stub is the only node. */
    return q->head == &q->stub && atomic_load(&q->tail) == &q->stub;
}
