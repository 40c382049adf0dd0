/*
 * engine/budget: a turn's time budget for tasks, from io_ratio and task_quantum.
 *
 * With io_ratio r below 100, tasks get io_ns * (100 - r) / r, at least one batch of 64; with 100
 * all tasks queued at the start. The quantum caps both. Without I/O at least 100 us: a poll costs
 * as much as 30 quick tasks.
 *
 * The clock is read after tasks 1, 2, 4 ... 64, each 64th, and each slow task: only one can
 * overshoot the quantum.
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
    int64_t quantum_ns; /* cap per turn */
};

struct budget {
    int64_t start_at_ns;
    int64_t limit_ns; /* from io_ratio */
    int64_t quantum_ns;
    int64_t checked_at_ns;
    uint64_t max_tasks;
    uint64_t run;
    uint64_t next_check; /* read the clock at this `run` */
    unsigned stride;
};

/*
 * budget_share_ns(io_ns, io_ratio):
 * Return io_ns * (100 - io_ratio) / io_ratio, saturating.
 *
 * Thread: any
 * Units:  ns, percent
 * Source: Netty NioEventLoop.run()
 */
int64_t budget_share_ns(int64_t io_ns, unsigned io_ratio);

/*
 * budget_begin(b, conf, io_ns, now_ns, queued):
 * Start the budget of a turn with ${io_ns} of I/O and ${queued} tasks.
 *
 * Thread: owner
 */
void budget_begin(struct budget *b, const struct budget_conf *conf, int64_t io_ns, int64_t now_ns,
                  uint64_t queued);

/*
 * budget_count(b):
 * Count one task run; true when budget_spent() is due.
 *
 * Thread: owner
 */
static inline bool budget_count(struct budget *b)
{
    return ++b->run >= b->next_check;
}

/*
 * budget_spent(b, now_ns):
 * Is the budget used up? If not, plan the next check.
 *
 * Thread: owner
 */
bool budget_spent(struct budget *b, int64_t now_ns);

#endif
