/*
 * engine/task_list: FIFO list of tasks, without locking.
 */
#ifndef ENGINE_TASK_LIST_H
#define ENGINE_TASK_LIST_H

#include <stddef.h>

#include "engine/task.h"

struct task_list {
    struct task *first; /* NULL: empty */
    struct task *last;
};

/* task_list_append(l, t): append ${t}, which is in no queue or list. Thread: owner */
static inline void task_list_append(struct task_list *l, struct task *t)
{
    atomic_store_explicit(&t->next, NULL, memory_order_relaxed);
    if (l->first)
        atomic_store_explicit(&l->last->next, t, memory_order_relaxed);
    else
        l->first = t;
    l->last = t;
}

/* task_list_take(l): remove and return the first task; NULL: empty list. Thread: owner */
static inline struct task *task_list_take(struct task_list *l)
{
    struct task *t = l->first;

    if (t)
        l->first = atomic_load_explicit(&t->next, memory_order_relaxed);
    return t;
}

#endif
