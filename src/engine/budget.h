/*
 * engine/budget: how long a turn may spend on tasks. Pure arithmetic, no clock of its own.
 *
 * With io_ratio r below 100 the tasks get io_ns * (100 - r) / r, or one batch of 64 where that is
 * less; with r = 100 they get what was queued when the turn began. Neither may exceed the quantum.
 * A turn in which no I/O was ready gives them a slice of 100 us at least: looking for I/O costs as
 * much as 30 quick tasks, and waits no longer than that.
 *
 * The clock is not read for every task: after the 1st, 2nd, 4th ... task up to every 64th while
 * tasks are quick, and after each task once they turn out slow, so that a long task overshoots the
 * quantum by no more than itself.
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
    int64_t quantum_ns; /* the most one turn spends on tasks */
};

struct budget {
    int64_t start_at_ns;
    int64_t limit_ns; /* the share that io_ratio gives */
    int64_t quantum_ns;
    int64_t checked_at_ns;
    uint64_t max_tasks;
    uint64_t run;
    uint64_t next_check; /* read the clock when `run` gets here */
    unsigned stride;
};

/*
 * budget_share_ns(io_ns, io_ratio):
 * io_ns * (100 - io_ratio) / io_ratio, saturating.
 *
 * Thread: any
 * Units:  ns, percent
 * Source: Netty NioEventLoop.run()
 */
int64_t budget_share_ns(int64_t io_ns, unsigned io_ratio);

/*
 * budget_begin(b, conf, io_ns, now_ns, queued):
 * A turn that spent ${io_ns} on I/O begins its tasks, of which ${queued} wait.
 *
 * Thread: owner of ${b}
 * Units:  ns
 */
void budget_begin(struct budget *b, const struct budget_conf *conf, int64_t io_ns, int64_t now_ns,
                  uint64_t queued);

/*
 * budget_count(b):
 * One more task was run. True when it is time for budget_spent().
 *
 * Thread: owner of ${b}
 */
static inline bool budget_count(struct budget *b)
{
    return ++b->run >= b->next_check;
}

/*
 * budget_spent(b, now_ns):
 * Must the turn stop running tasks? If not, the next check is planned.
 *
 * Thread: owner of ${b}
 * Units:  ns
 */
bool budget_spent(struct budget *b, int64_t now_ns);

#endif
