/*
 * engine/task: unit of work for a loop or executor, embedded in its object.
 *
 * An accepted task is run or dropped, once, on its loop or executor, or on the thread that ended
 * it. drop() releases its resources. run() may submit its task again.
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
    _Atomic(struct task *) next; /* in its queue */
    const struct task_type *type;
    int64_t queued_at_ns; /* set by the submit */
};

#endif
