/*
 * engine/affinity: CPU affinity and scheduling policy of threads.
 *
 * A loop's thread would inherit both from the thread that submits first. So it sets its own: the
 * policy noted when its loop was created, and the main thread's processors (`taskset -a -p` changes
 * all alike).
 *
 * note: SCHED_BATCH. A waking thread preempts the running one: two context switches per client if
 * boss and worker share a processor. Under SCHED_BATCH it waits until the other idles or the
 * scheduler ticks, and finds many clients; on an idle processor it wakes as fast. That saves a
 * fifth of the processor time of short connections (tests/bench). Only SCHED_OTHER is replaced.
 */
#ifndef ENGINE_AFFINITY_H
#define ENGINE_AFFINITY_H

#include <stdbool.h>

enum affinity_scheduling {
    AFFINITY_INHERIT, /* the creating thread's policy */
    AFFINITY_BATCH
};

struct affinity_conf {
    bool pinned; /* to `cpu`; a failure is logged, the thread runs anywhere */
    unsigned cpu;
    enum affinity_scheduling scheduling;
};

struct affinity {
    struct affinity_conf conf;
    int policy; /* of the creating thread */
};

/*
 * affinity_note(p, conf):
 * Store ${conf} and the calling thread's policy.
 *
 * Thread: creator of the loop or executor
 */
void affinity_note(struct affinity *p, const struct affinity_conf *conf);

/*
 * affinity_take(p, name):
 * Apply both to the calling thread; log failures.
 *
 * Thread: the new one
 */
void affinity_take(const struct affinity *p, const char *name);

#endif
