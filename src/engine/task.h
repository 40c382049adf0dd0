/*
 * engine/task: a piece of work for a loop, embedded in the object it works on.
 *
 * A task that was accepted is run exactly once or dropped exactly once, on the loop it was given to
 * or, once that loop has ended, on the thread that ended it. (Of an executor it is one of its
 * threads, or the one that stops it.) drop() releases what run() would have used (closes the
 * descriptor, frees the object). A task may be given away again from its own run().
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
    _Atomic(struct task *) next; /* of the queue it is on */
    const struct task_type *type;
    int64_t queued_at_ns; /* written by whoever queues it */
};

#endif
