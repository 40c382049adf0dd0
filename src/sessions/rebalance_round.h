/*
 * sessions/rebalance_round: moves sessions of one loop, in steps on that loop, as
 * sessions/rebalance_plan decides.
 */
#ifndef SESSIONS_REBALANCE_ROUND_H
#define SESSIONS_REBALANCE_ROUND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "engine/visit.h"
#include "sessions/rebalance_plan.h"
#include "sessions/session_idlest.h"

struct loop_group;

/* Most sessions that move in a round; a session that has moved stays for this time. */
#define REBALANCE_ROUND_MAX     SESSION_IDLEST_MAX
#define REBALANCE_ROUND_REST_NS (30 * NS_PER_S)

/* Sessions by what became of them. */
struct rebalance_counts {
    uint64_t moved;
    uint64_t heavy;  /* too heavy for any other loop */
    uint64_t busy;   /* session_may_move() said no */
    uint64_t failed; /* no memory, visits held it off, or the other loop takes no sessions */
};

struct rebalance_round {
    struct visit visit;
    struct visit_part part;
    struct loop_group *loops;
    struct session_idlest heaviest;
    unsigned tries; /* moves that were held off */
    /* Set before the round, changed by it. */
    struct rebalance_plan plan;
    int from;
    /* Results, by loop number, of loop_group_max() loops. */
    struct rebalance_counts counts;
    unsigned *got;
    /* The round has ended: on any thread. */
    void (*ended)(struct rebalance_round *round);
};

/*
 * rebalance_round_init(r, loops, ended) / rebalance_round_begin(r):
 * Initialize / begin a round: sets `counts` and `got`, and calls ended(), once.
 *
 * Thread: rebalance_round_begin(): any, while no round is under way
 */
void rebalance_round_init(struct rebalance_round *r, struct loop_group *loops,
                          void (*ended)(struct rebalance_round *round));
void rebalance_round_begin(struct rebalance_round *r);

#endif
