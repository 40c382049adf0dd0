#include "engine/budget.h"

#include "base/clock.h"

/* Tasks are slow if two readings of the clock are further apart than this. */
#define BUDGET_SLOW_NS (50 * NS_PER_US)

/* Maximum number of objects between two clock readings of a step. */
#define BUDGET_STEP_STRIDE 8

int64_t budget_share_ns(int64_t io_ns, unsigned io_ratio)
{
    int64_t product;

    if (__builtin_mul_overflow(io_ns, (int64_t)(100 - io_ratio), &product))
        return CLOCK_NEVER;
    return product / (int64_t)io_ratio;
}

static void budget_start(struct budget *b, int64_t now_ns, int64_t quantum_ns, uint64_t max_tasks)
{
    b->start_at_ns = now_ns;
    b->checked_at_ns = now_ns;
    b->quantum_ns = quantum_ns;
    b->limit_ns = quantum_ns;
    b->max_owed_ns = 0;
    b->max_tasks = max_tasks;
    b->run = 0;
    b->checked_run = 0;
    b->stride = 1;
    b->max_stride = BUDGET_BATCH;
    b->next_check = 1;
}

void budget_begin(struct budget *b, const struct budget_conf *conf, int64_t io_ns, int64_t now_ns,
                  uint64_t queued)
{
    budget_start(b, now_ns, conf->quantum_ns, conf->io_ratio == 100 ? queued : UINT64_MAX);
    if (conf->io_ratio == 100)
        return;
    b->limit_ns = BUDGET_SLICE_NS;
    if (io_ns > 0) {
        b->limit_ns = budget_share_ns(io_ns, conf->io_ratio) - b->owed_ns;
        b->max_owed_ns = conf->quantum_ns;
    }
}

void budget_end(struct budget *b, int64_t now_ns)
{
    int64_t owed_ns = now_ns - b->start_at_ns - b->limit_ns;

    if (owed_ns > b->max_owed_ns)
        owed_ns = b->max_owed_ns;
    b->owed_ns = owed_ns > 0 ? owed_ns : 0;
}

void budget_begin_step(struct budget *b, int64_t now_ns, int64_t quantum_ns, uint64_t max)
{
    budget_start(b, now_ns, quantum_ns, max);
    b->max_stride = BUDGET_STEP_STRIDE;
}

static uint64_t budget_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/*
 * Return how many of the next ${n} tasks fit into ${left_ns} if they are like the last ones, at
 * least one. A division costs as much as several quick tasks, so it is done only if not all fit.
 */
static uint64_t budget_fitting(const struct budget *b, int64_t now_ns, int64_t left_ns, uint64_t n)
{
    int64_t last_ns = now_ns - b->checked_at_ns;
    uint64_t last_run = b->run - b->checked_run;
    uint64_t fitting;

    if (left_ns > BUDGET_SLOW_NS)
        left_ns = BUDGET_SLOW_NS;
    if (last_ns <= left_ns / 2 && n <= 2 * last_run)
        return n;
    fitting = (uint64_t)left_ns * last_run / (uint64_t)(last_ns > 0 ? last_ns : 1);
    return fitting > 0 ? budget_least(n, fitting) : 1;
}

/* When to read the clock next, if ${left_ns} of the budget are left. */
static void budget_plan(struct budget *b, int64_t now_ns, int64_t left_ns)
{
    uint64_t left_of_batch = BUDGET_BATCH - b->run % BUDGET_BATCH;
    uint64_t n;

    if (now_ns - b->checked_at_ns > BUDGET_SLOW_NS)
        b->stride = 1;
    n = budget_fitting(b, now_ns, left_ns, budget_least(b->stride, left_of_batch));
    b->checked_at_ns = now_ns;
    b->checked_run = b->run;
    b->next_check = budget_least(b->run + n, b->max_tasks);
    if (b->stride < b->max_stride)
        b->stride *= 2;
}

bool budget_spent(struct budget *b, int64_t now_ns)
{
    int64_t limit_ns = b->limit_ns < b->quantum_ns ? b->limit_ns : b->quantum_ns;
    int64_t left_ns = limit_ns - (now_ns - b->start_at_ns);

    if (b->run >= b->max_tasks || left_ns <= 0)
        return true;
    budget_plan(b, now_ns, left_ns);
    return false;
}
