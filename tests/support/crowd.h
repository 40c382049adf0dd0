/*
 * support/crowd: two workers with echo sessions that say they are at server a or b of upstream
 * `back`, a third without a thread, and a loop that asks for them.
 */
#ifndef SUPPORT_CROWD_H
#define SUPPORT_CROWD_H

#include <stdatomic.h>

#include "engine/loop.h"
#include "sessions/session_scan.h"

#define CROWD_WORKERS 3
#define CROWD_MAX     600

struct counters;

struct crowd {
    struct loop *asker;
    struct session_scan_workers workers;
    const struct counters *counters; /* of their listener */
    int clients[CROWD_MAX];
    unsigned n;
    atomic_uint ended;
};

extern struct crowd crowd;

/*
 * crowd_enter() / crowd_leave():
 * Checked fixtures.
 *
 * Thread: the test's
 */
void crowd_enter(void);
void crowd_leave(void);

/*
 * crowd_add(n, worker):
 * Add ${n} sessions, of clients that were echoed: the nth of all is at server a if n is even.
 *
 * Thread: the test's
 */
void crowd_add(unsigned n, unsigned worker);

/*
 * crowd_stop_worker(i):
 * End the loop of worker ${i}, and wait for its end.
 *
 * Thread: the test's
 */
void crowd_stop_worker(unsigned i);

#endif
