#include "sessions/rebalance_load.h"

#include "base/clock.h"
#include "engine/loop_group.h"
#include "engine/loop_stats.h"
#include "sessions/rebalance_plan.h"

#define REBALANCE_LOAD_PERMILLE 990

int64_t rebalance_load_turn_ns(const struct histogram_view *before,
                               const struct histogram_view *now)
{
    struct histogram_view between = histogram_since(now, before);
    int64_t limit_ns = histogram_quantile_ns(&between, REBALANCE_LOAD_PERMILLE);

    return limit_ns == CLOCK_NEVER ? histogram_limit_ns(HISTOGRAM_BUCKETS - 2) : limit_ns / 2;
}

/* Cut at the whole time: see loop_stats_busy_ns(). */
static unsigned rebalance_load_us(int64_t busy_ns, int64_t over_ns)
{
    double share = over_ns > 0 && busy_ns > 0 ? (double)busy_ns / (double)over_ns : 0;

    return (unsigned)((share < 1 ? share : 1) * REBALANCE_PLAN_WHOLE_US);
}

void rebalance_load_look(struct rebalance_loads *loads, const struct loop_group *loops,
                         struct rebalance_plan *plan)
{
    int64_t now_ns = clock_now_ns(), over_ns = loads->at_ns > 0 ? now_ns - loads->at_ns : 0;

    for (unsigned i = 0; i < plan->n_loops; i++) {
        struct rebalance_load *before = &loads->list[i], now;
        struct loop_stats s;

        loop_stats(loop_group_at(loops, i), &s);
        now = (struct rebalance_load){.busy_ns = loop_stats_busy_ns(&s), .turn = s.turn};
        plan->loops[i].load_us = rebalance_load_us(now.busy_ns - before->busy_ns, over_ns);
        plan->loops[i].turn_ns = over_ns > 0 ? rebalance_load_turn_ns(&before->turn, &now.turn) : 0;
        *before = now;
    }
    loads->at_ns = now_ns;
}
