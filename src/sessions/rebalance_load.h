/* sessions/rebalance_load: the load of loops between two looks, for sessions/rebalance_plan. */
#ifndef SESSIONS_REBALANCE_LOAD_H
#define SESSIONS_REBALANCE_LOAD_H

#include <stdint.h>

#include "engine/histogram.h"

struct loop;
struct loop_group;
struct rebalance_plan;

/* What a loop has done so far. Zeroed: nothing. */
struct rebalance_load {
    int64_t busy_ns; /* in turns, without their polls */
    struct histogram_view turn;
};

/* The loads of all loops at the last look. */
struct rebalance_loads {
    int64_t at_ns;               /* 0: never */
    struct rebalance_load *list; /* by loop number, of loop_group_max() loops */
};

/*
 * rebalance_load_look(loads, loops, plan):
 * Set the loads of ${plan} to those since the last look, scaled to a second, for the first
 * plan->n_loops of ${loops}. The first look sets none.
 */
void rebalance_load_look(struct rebalance_loads *loads, const struct loop_group *loops,
                         struct rebalance_plan *plan);

/*
 * rebalance_load_turn_ns(before, now):
 * 99th percentile of the turns between, rounded down to the lower limit of its bucket.
 */
int64_t rebalance_load_turn_ns(const struct histogram_view *before,
                               const struct histogram_view *now);

#endif
