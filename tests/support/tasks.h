/*
 * support/tasks: tasks that tell what became of them.
 */
#ifndef SUPPORT_TASKS_H
#define SUPPORT_TASKS_H

#include <pthread.h>
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

/* Keeps its thread, but not the processor, for a while. */
struct tasks_timely {
    struct task task;
    int64_t ns;
};

/* Is run until as many tasks as the barrier counts are running. */
struct tasks_meeting {
    struct timer timer;
    pthread_barrier_t *barrier;
};

/* Keeps a loop or a thread busy until it is told to go on. */
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
 * tasks_counted_init_all(t, n) / tasks_counted_run(t, n) / tasks_counted_dropped(t, n):
 * Make ${n} fresh ones; how often they were run, or dropped, all together.
 *
 * Thread: the test's; counting: any
 */
void tasks_counted_init_all(struct tasks_counted *t, unsigned n);
unsigned tasks_counted_run(const struct tasks_counted *t, unsigned n);
unsigned tasks_counted_dropped(const struct tasks_counted *t, unsigned n);

/*
 * tasks_meeting_init(m, barrier) / tasks_never_dropped(t):
 * A fresh one, as a task (m->timer.task) or a timer; the drop of a task type that must not be
 * dropped: the test fails.
 *
 * Thread: the test's
 */
void tasks_meeting_init(struct tasks_meeting *m, pthread_barrier_t *barrier);
void tasks_never_dropped(struct task *t);

/*
 * tasks_timely_submit(t, type, loop, queue, ns):
 * Submit a fresh one of ${type}.
 *
 * Thread: any
 * Errors: the test fails
 */
void tasks_timely_submit(struct tasks_timely *t, const struct task_type *type, struct loop *loop,
                         enum loop_queue queue, int64_t ns);
void tasks_timely_run(struct task *t);
void tasks_timely_drop(struct task *t);

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
 * Errors: the test fails
 */
void tasks_block_begin(struct tasks_block *b, struct loop *loop);
void tasks_block_end(struct tasks_block *b);

/*
 * tasks_block_init(b) / tasks_block_wait(b):
 * For what is no loop: a fresh one to submit; wait until it is run, or dropped.
 *
 * Thread: the test's
 */
void tasks_block_init(struct tasks_block *b);
void tasks_block_wait(struct tasks_block *b);

#endif
