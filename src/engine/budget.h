/*
 * engine/budget: a turn's time budget for tasks, from io_ratio and task_quantum.
 *
 * With io_ratio r below 100, tasks get the time io_ns * (100 - r) / r, but at least one task runs.
 * In a turn without I/O they get 100 us. With io_ratio 100, all tasks queued at the start run.
 * task_quantum limits both.
 *
 * Time beyond the share is owed to the I/O of the next turns (deficit round robin, Shreedhar and
 * Varghese 1995). While the debt is greater than a turn's share, that turn runs no task. A turn
 * without I/O cancels the debt, and it is at most task_quantum.
 *
 * The clock is read after 1, 2, 4 ... 64 tasks, then after every 64th; after slow tasks this series
 * starts again. It is read earlier if the last tasks took so long that the rest of the budget, or
 * 50 us, would be exceeded.
 */
#ifndef ENGINE_BUDGET_H
#define ENGINE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define BUDGET_BATCH    64
#define BUDGET_SLICE_NS (100 * NS_PER_US)

/* io_ratio of a loop that sets it itself (engine/io_tune). */
#define BUDGET_RATIO_AUTO 0

struct budget_conf {
    unsigned io_ratio;  /* 1 to 100; of a loop also BUDGET_RATIO_AUTO */
    int64_t quantum_ns; /* limit for each step of a turn that runs tasks */
    int64_t goal_ns;    /* for BUDGET_RATIO_AUTO: longest wait of 99 % of the tasks */
};

struct budget {
    int64_t owed_ns; /* time that tasks of earlier turns took beyond their share */
    int64_t max_owed_ns;
    int64_t start_at_ns;
    int64_t limit_ns; /* time for tasks, from io_ratio; negative: more is owed than this share */
    int64_t quantum_ns;
    int64_t checked_at_ns;
    uint64_t max_tasks;
    uint64_t run;
    uint64_t checked_run; /* value of `run` at checked_at_ns */
    uint64_t next_check;  /* value of `run` at which to read the clock */
    unsigned stride, max_stride;
};

/*
 * budget_share_ns(io_ns, io_ratio):
 * Return the tasks' share of time after ${io_ns} of I/O.
 *
 * Units:  ${io_ratio} percent, 1 to 100
 * Source: Netty NioEventLoop.run()
 */
int64_t budget_share_ns(int64_t io_ns, unsigned io_ratio);

/*
 * budget_begin(b, conf, io_ns, now_ns, queued):
 * Start the budget of a turn that has spent ${io_ns} on I/O and has ${queued} tasks. ${b} keeps
 * what earlier turns owe; it is zeroed before the first.
 *
 * Thread: owner
 */
void budget_begin(struct budget *b, const struct budget_conf *conf, int64_t io_ns, int64_t now_ns,
                  uint64_t queued);

/*
 * budget_allows_tasks(b):
 * May this turn run tasks? False: its share pays a part of the debt.
 *
 * Thread: owner
 */
static inline bool budget_allows_tasks(const struct budget *b)
{
    return b->limit_ns >= 0;
}

/*
 * budget_end(b, now_ns):
 * End the turn's budget, which tasks have used until ${now_ns}: compute the debt.
 *
 * Thread: owner
 */
void budget_end(struct budget *b, int64_t now_ns);

/* budget_count(b): count one task that has run. True: call budget_spent() now. Thread: owner */
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

/* budget_spent(b, now_ns): is the budget used up? Thread: owner */
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
