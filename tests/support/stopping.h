/*
 * support/stopping: a loop that is stopped, and tasks that are submitted to it meanwhile.
 *
 * Thread: the test's, unless it says otherwise
 */
#ifndef SUPPORT_STOPPING_H
#define SUPPORT_STOPPING_H

#include <stdint.h>

#include "support/tasks.h"

struct loop;

#define MS(n) ((n)*NS_PER_MS)

struct stopping {
    struct loop *loop;
    struct tasks_block block;
    struct tasks_trace trace;
    /*
     * Submit a task each 20 ms until ${ms} have passed or one is refused; how many were
     * accepted.
     */
    struct tasks_counted steady[200];
    int64_t last_submitted_at_ns; /* or a little earlier */
};

extern struct stopping stopping;

void stopping_setup(void);

void stopping_teardown(void);

/* Stop and wait; how long it took. */
int64_t stopping_take_ms(int64_t quiet_ns, int64_t timeout_ns);

void stopping_start(void);

unsigned stopping_submit_for(int64_t ms);

#endif
