/*
 * engine/affinity: on which processors a thread runs, and who waits for whom there.
 *
 * A new thread has both from the one that starts it; but who starts the thread of a loop or of an
 * executor is chance: the first who has a task for it. So a thread takes them by itself: the policy
 * is noted when the loop is created, and the processors are those of the main thread as they are
 * when the new one begins (`taskset -a -p` changes both alike).
 *
 * note: who waits on a busy processor. A thread that wakes interrupts the one that runs there. For
 *                           a loop with little to
 * do at a time that is two context switches for each bit of it: a boss beside a worker on one
 * processor wakes for every single client. With SCHED_BATCH it wakes as quickly on an idle
 * processor, but on a busy one only when that has nothing to do or at the scheduler's next tick,
 * and then finds many clients at once. A fifth of the processor time of a short connection is
 * saved: see tests/bench. Only SCHED_OTHER is changed: who has started the process under another
 * policy meant it.
 */
#ifndef ENGINE_AFFINITY_H
#define ENGINE_AFFINITY_H

#include <stdbool.h>

enum affinity_scheduling {
    AFFINITY_INHERIT, /* as the thread that creates it */
    AFFINITY_BATCH    /* see note: who waits on a busy processor */
};

struct affinity_conf {
    bool pinned; /* to the processor `cpu`; a thread that cannot be is logged and runs anywhere */
    unsigned cpu;
    enum affinity_scheduling scheduling;
};

struct affinity {
    struct affinity_conf conf;
    int policy; /* of the creator */
};

/*
 * affinity_note(p, conf):
 * The calling thread's policy, and how a thread that begins later is to differ from it.
 *
 * Thread: who creates that thread's loop or executor
 */
void affinity_note(struct affinity *p, const struct affinity_conf *conf);

/*
 * affinity_take(p, name):
 * Place the calling thread, called ${name} in the log. What the system refuses stays as it is.
 *
 * Thread: the new one
 */
void affinity_take(const struct affinity *p, const char *name);

#endif
