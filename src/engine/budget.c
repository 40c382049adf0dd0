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

void budget_begin(struct budget *b, const struct budget_conf *conf, int64_t io_ns, int64_t now_ns,
                  uint64_t queued)
{
    b->start_at_ns = now_ns;
    b->checked_at_ns = now_ns;
    b->quantum_ns = conf->quantum_ns;
    b->limit_ns = conf->io_ratio == 100 ? conf->quantum_ns : budget_share_ns(io_ns, conf->io_ratio);
    if (io_ns == 0 && b->limit_ns < BUDGET_SLICE_NS)
        b->limit_ns = BUDGET_SLICE_NS;
    b->max_tasks = conf->io_ratio == 100 ? queued : UINT64_MAX;
    b->run = 0;
    b->stride = 1;
    b->max_stride = BUDGET_BATCH;
    b->next_check = 1;
}

void budget_begin_step(struct budget *b, int64_t now_ns, int64_t quantum_ns, uint64_t max)
{
    const struct budget_conf conf = {.io_ratio = 100, .quantum_ns = quantum_ns};

    budget_begin(b, &conf, 0, now_ns, max);
    b->max_stride = BUDGET_STEP_STRIDE;
}

static void budget_plan(struct budget *b, int64_t now_ns)
{
    uint64_t left_of_batch = BUDGET_BATCH - b->run % BUDGET_BATCH;

    if (now_ns - b->checked_at_ns > BUDGET_SLOW_NS)
        b->stride = 1;
    b->checked_at_ns = now_ns;
    b->next_check = b->run + (b->stride < left_of_batch ? b->stride : left_of_batch);
    if (b->next_check > b->max_tasks)
        b->next_check = b->max_tasks;
    if (b->stride < b->max_stride)
        b->stride *= 2;
}

bool budget_spent(struct budget *b, int64_t now_ns)
{
    int64_t spent_ns = now_ns - b->start_at_ns;

    if (b->run >= b->max_tasks || spent_ns >= b->quantum_ns)
        return true;
    if (spent_ns >= b->limit_ns && b->run >= BUDGET_BATCH)
        return true;
    budget_plan(b, now_ns);
    return false;
}
