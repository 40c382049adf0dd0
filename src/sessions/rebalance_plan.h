/*
 * sessions/rebalance_plan: decides which loop gives sessions up, and which loops get them: from the
 * given loads alone.
 *
 * Each second: rebalance_plan_note(), rebalance_plan_from(), then for the sessions of that loop,
 * heaviest first, rebalance_plan_place().
 */
#ifndef SESSIONS_REBALANCE_PLAN_H
#define SESSIONS_REBALANCE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

/* Load of a whole second, in microseconds; that of a busy loop; looks at a busy loop in a row. */
#define REBALANCE_PLAN_WHOLE_US 1000000
#define REBALANCE_PLAN_BUSY_US  700000
#define REBALANCE_PLAN_LOOKS    3

/* What the idlest loop must be below, of the loop that gives sessions up. */
#define REBALANCE_PLAN_IDLE_PERCENT 80

/* Result: no loop. */
#define REBALANCE_PLAN_NONE (-1)

struct rebalance_plan_loop {
    unsigned load_us; /* time outside the poll in the last second */
    int64_t turn_ns;  /* 99th percentile of the durations of its turns, rounded down */
    unsigned busy;    /* looks in a row at which it was busy */
};

struct rebalance_plan {
    int64_t turn_goal_ns; /* a loop with longer turns is busy, too; 0: no goal */
    unsigned n_loops;     /* those in use */
    struct rebalance_plan_loop *loops;
};

/* rebalance_plan_note(p): count the looks at which the loops were busy; true: one is busy now. */
bool rebalance_plan_note(struct rebalance_plan *p);

/*
 * rebalance_plan_from(p, is_forced) / rebalance_plan_idlest(p):
 * The loop that gives sessions up: the busiest of those that were busy at REBALANCE_PLAN_LOOKS
 * looks, ${is_forced}: of all; REBALANCE_PLAN_NONE unless the idlest has far less load / the loop
 * with the least load.
 */
int rebalance_plan_from(const struct rebalance_plan *p, bool is_forced);
int rebalance_plan_idlest(const struct rebalance_plan *p);

/*
 * rebalance_plan_place(p, from, load_us):
 * Choose a loop for a session of ${load_us} of loop ${from}, and add its load there: the idlest,
 * which never gets more than half of the difference. REBALANCE_PLAN_NONE: the session stays.
 */
int rebalance_plan_place(struct rebalance_plan *p, int from, unsigned load_us);

/* rebalance_plan_undo(p, from, to, load_us): the session placed last could not move. */
void rebalance_plan_undo(struct rebalance_plan *p, int from, int to, unsigned load_us);

#endif
