/*
 * engine/budget: a turn's time budget for tasks, from io_ratio and task_quantum.
 *
 * With io_ratio r below 100, tasks get the time io_ns * (100 - r) / r, but at least 64 tasks run.
 * In a turn without I/O they get 100 us. With io_ratio 100, all tasks queued at the start run.
 * task_quantum limits both.
 *
 * The clock is read after 1, 2, 4 ... 64 tasks, then after every 64th; after slow tasks this series
 * starts again.
 */
#ifndef ENGINE_BUDGET_H
#define ENGINE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define BUDGET_BATCH    64
#define BUDGET_SLICE_NS (100 * NS_PER_US)

struct budget_conf {
    unsigned io_ratio;  /* 1 to 100 */
    int64_t quantum_ns; /* limit for each step of a turn that runs tasks */
};

struct budget {
    int64_t start_at_ns;
    int64_t limit_ns; /* time for tasks, from io_ratio */
    int64_t quantum_ns;
    int64_t checked_at_ns;
    uint64_t max_tasks;
    uint64_t run;
    uint64_t next_check; /* value of `run` at which to read the clock */
    unsigned stride, max_stride;
};

/*
 * budget_share_ns(io_ns, io_ratio):
 * Return the tasks' share of time after ${io_ns} of I/O.
 *
 * Thread: any
 * Units:  ${io_ratio} percent, 1 to 100
 * Source: Netty NioEventLoop.run()
 */
int64_t budget_share_ns(int64_t io_ns, unsigned io_ratio);

/*
 * budget_begin(b, conf, io_ns, now_ns, queued):
 * Start the budget of a turn that has spent ${io_ns} on I/O and has ${queued} tasks.
 *
 * Thread: owner
 */
void budget_begin(struct budget *b, const struct budget_conf *conf, int64_t io_ns, int64_t now_ns,
                  uint64_t queued);

/*
 * budget_count(b):
 * Count one task that has run. True: call budget_spent() now.
 *
 * Thread: owner
 */
static inline bool budget_count(struct budget *b)
{
    return ++b->run >= b->next_check;
}

/* A walk over many objects is cut into steps of at most this time. */
#define BUDGET_STEP_NS (250 * NS_PER_US)

/*
 * budget_begin_step(b, now_ns, quantum_ns, max):
 * Start the budget of a step, which ends after ${quantum_ns} or ${max} objects (or tasks). The
 * clock is read after at most eight objects, because each may take a system call.
 *
 * Thread: owner
 */
void budget_begin_step(struct budget *b, int64_t now_ns, int64_t quantum_ns, uint64_t max);

/*
 * budget_spent(b, now_ns):
 * Is the budget used up?
 *
 * Thread: owner
 */
bool budget_spent(struct budget *b, int64_t now_ns);

/*
 * budget_step_over(b, was_long):
 * Count one object of a step. True: the budget is used up. If ${was_long}, the clock is read now.
 *
 * Thread: owner
 */
static inline bool budget_step_over(struct budget *b, bool was_long)
{
    return (budget_count(b) || was_long) && budget_spent(b, clock_now_ns());
}

#endif
