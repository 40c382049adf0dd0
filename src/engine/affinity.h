/*
 * engine/affinity: CPU affinity and scheduling policy of threads.
 *
 * By default a thread has the scheduling policy of its loop's or executor's creator, and the main
 * thread's processors.
 *
 * note: SCHED_BATCH. Under SCHED_OTHER a waking boss preempts a worker on the same processor: two
 * context switches per client. Under SCHED_BATCH the boss waits until the worker sleeps or the
 * scheduler ticks, and then accepts many clients; an idle processor runs it at once. This saves a
 * fifth of the processor time of short connections (tests/bench).
 */
#ifndef ENGINE_AFFINITY_H
#define ENGINE_AFFINITY_H

#include <stdbool.h>

enum affinity_scheduling {
    AFFINITY_INHERIT, /* the policy of the thread that called affinity_note() */
    AFFINITY_BATCH
};

struct affinity_conf {
    bool pinned; /* pin the thread to processor `cpu`; a failure is only logged */
    unsigned cpu;
    enum affinity_scheduling scheduling;
};

struct affinity {
    struct affinity_conf conf;
    int policy; /* of the thread that called affinity_note() */
};

/*
 * affinity_note(p, conf):
 * Store ${conf} and the calling thread's policy.
 *
 * Thread: the creator of the loop or executor
 */
void affinity_note(struct affinity *p, const struct affinity_conf *conf);

/*
 * affinity_take(p, name):
 * Apply ${p} to the calling thread; log failures under ${name}.
 *
 * Thread: the new thread
 */
void affinity_take(const struct affinity *p, const char *name);

#endif
