#include "sessions/rebalance_plan.h"

static bool rebalance_plan_is_busy(const struct rebalance_plan *p, unsigned i)
{
    const struct rebalance_plan_loop *loop = &p->loops[i];

    return loop->load_us > REBALANCE_PLAN_BUSY_US ||
           (p->turn_goal_ns > 0 && loop->turn_ns > p->turn_goal_ns);
}

bool rebalance_plan_note(struct rebalance_plan *p)
{
    bool any = false;

    for (unsigned i = 0; i < p->n_loops; i++) {
        bool is_busy = rebalance_plan_is_busy(p, i);

        p->loops[i].busy = is_busy ? p->loops[i].busy + 1 : 0;
        any |= is_busy;
    }
    return any;
}

int rebalance_plan_idlest(const struct rebalance_plan *p)
{
    int idlest = REBALANCE_PLAN_NONE;

    for (unsigned i = 0; i < p->n_loops; i++)
        if (idlest == REBALANCE_PLAN_NONE || p->loops[i].load_us < p->loops[idlest].load_us)
            idlest = (int)i;
    return idlest;
}

int rebalance_plan_from(const struct rebalance_plan *p, bool is_forced)
{
    int from = REBALANCE_PLAN_NONE, idlest = rebalance_plan_idlest(p);

    for (unsigned i = 0; i < p->n_loops; i++)
        if ((is_forced || p->loops[i].busy >= REBALANCE_PLAN_LOOKS) &&
            (from == REBALANCE_PLAN_NONE || p->loops[i].load_us > p->loops[from].load_us))
            from = (int)i;
    if (from == REBALANCE_PLAN_NONE ||
        (uint64_t)p->loops[idlest].load_us * 100 >=
            (uint64_t)p->loops[from].load_us * REBALANCE_PLAN_IDLE_PERCENT)
        return REBALANCE_PLAN_NONE;
    return from;
}

int rebalance_plan_place(struct rebalance_plan *p, int from, unsigned load_us)
{
    int to = rebalance_plan_idlest(p);

    if ((uint64_t)p->loops[to].load_us + 2 * (uint64_t)load_us > p->loops[from].load_us)
        return REBALANCE_PLAN_NONE;
    p->loops[from].load_us -= load_us;
    p->loops[to].load_us += load_us;
    return to;
}

void rebalance_plan_undo(struct rebalance_plan *p, int from, int to, unsigned load_us)
{
    p->loops[from].load_us += load_us;
    p->loops[to].load_us -= load_us;
}
