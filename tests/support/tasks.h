/*
 * support/tasks: tasks that tell what became of them.
 */
#ifndef SUPPORT_TASKS_H
#define SUPPORT_TASKS_H

#include <semaphore.h>
#include <stdatomic.h>

#include "engine/loop.h"

/* Counts how often it was run and dropped. */
struct tasks_counted {
    struct task task;
    atomic_uint run;
    atomic_uint dropped;
};

/* Letters in the order in which the tasks that carry them ran; '!' before one that was dropped. */
struct tasks_trace {
    char text[512];
    unsigned len;
};

/*
 * Adds its letter to the trace, and then submits `then` to `then_queue` of the loop, if there is
 * one.
 */
struct tasks_traced {
    struct task task;
    struct tasks_trace *trace;
    char letter;
    struct tasks_traced *then;
    enum loop_queue then_queue;
};

/* The same for a timer. */
struct tasks_timer {
    struct timer timer;
    struct tasks_trace *trace;
    char letter;
};

/* Keeps the processor busy for a while. */
struct tasks_slow {
    struct task task;
    int64_t ns;
    uint64_t turn; /* in which it ran */
    atomic_uint run;
};

/* Keeps a loop busy until it is told to go on. */
struct tasks_block {
    struct task task;
    sem_t entered;
    sem_t released;
};

/*
 * tasks_counted_init(t) / tasks_traced_init(t, trace, letter) / tasks_timer_init(t, trace, letter):
 * A fresh task.
 *
 * Thread: the test's
 */
void tasks_counted_init(struct tasks_counted *t);
void tasks_traced_init(struct tasks_traced *t, struct tasks_trace *trace, char letter);
void tasks_timer_init(struct tasks_timer *t, struct tasks_trace *trace, char letter);

/*
 * tasks_slow_init(t, ns) / tasks_slow_most(t, n):
 * A fresh one that takes ${ns}; how many of the ${n} that have run one after the other ran in the
 * same turn, at most.
 *
 * Thread: the test's
 * Units:  ns
 */
void tasks_slow_init(struct tasks_slow *t, int64_t ns);
unsigned tasks_slow_most(const struct tasks_slow *t, unsigned n);

/*
 * tasks_trace_add(trace, letter):
 * Note ${letter}.
 *
 * Thread: the loop of the trace
 * Errors: none (the test fails when it is full)
 */
void tasks_trace_add(struct tasks_trace *trace, char letter);

/*
 * tasks_block_begin(b, loop) / tasks_block_end(b):
 * Keep ${loop} inside a task from when begin returns until end is called.
 *
 * Thread: any but the loop's
 * Errors: none (the test fails)
 */
void tasks_block_begin(struct tasks_block *b, struct loop *loop);
void tasks_block_end(struct tasks_block *b);

#endif
