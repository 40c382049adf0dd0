/*
 * engine/task: unit of work for a loop or executor, embedded in its object.
 *
 * An accepted task is run or dropped, once: by its loop or executor, or by the thread that stops
 * it. drop() releases the object's resources; NULL: nothing to do. run() may submit it again.
 */
#ifndef ENGINE_TASK_H
#define ENGINE_TASK_H

#include <stdatomic.h>
#include <stdint.h>

struct task;

struct task_type {
    const char *name; /* for logs */
    void (*run)(struct task *t);
    void (*drop)(struct task *t);
};

struct task {
    _Atomic(struct task *) next; /* next in the queue */
    const struct task_type *type;
    int64_t queued_at_ns; /* when submitted; in loops 0 if not measured */
};

/* task_drop(t): drop ${t} instead of running it. Thread: as drop() */
static inline void task_drop(struct task *t)
{
    if (t->type->drop)
        t->type->drop(t);
}

#endif
