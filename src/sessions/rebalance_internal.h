/* sessions/rebalance_internal: shared by rebalance.c and rebalance_look.c. */
#ifndef SESSIONS_REBALANCE_INTERNAL_H
#define SESSIONS_REBALANCE_INTERNAL_H

#include "engine/timer.h"
#include "sessions/rebalance.h"
#include "sessions/rebalance_load.h"
#include "sessions/rebalance_round.h"

/* Moves of a round, until its log line. */
struct rebalance_episode {
    uint64_t moved; /* 0: none */
    bool is_asked;
    unsigned from, idlest;
    unsigned from_us, idlest_us; /* before */
    int64_t turn_ns;
    unsigned *got; /* sessions by loop number */
};

struct rebalance {
    struct rebalance_env env;
    _Atomic(enum rebalance_mode) mode; /* this and the next: read by main */
    _Atomic int64_t turn_goal_ns;
    /* Main only: since its last look, while the control loop does not look. */
    struct rebalance_plan noticed;
    struct rebalance_loads noticed_loads;
    atomic_bool looks; /* `look` is scheduled; set by the thread that schedules it */
    struct timer look;
    /* Control loop only. */
    struct rebalance_plan plan;
    struct rebalance_loads loads;
    unsigned calm; /* looks in a row without a loop that is half busy */
    struct rebalance_ask *ask;
    bool is_moving; /* a round is under way */
    struct rebalance_round round;
    struct task round_ended;
    struct rebalance_episode episode;
    /* Relaxed; written by the control loop. */
    _Atomic uint64_t n_looks, n_episodes, n_moved, n_heavy, n_busy, n_failed;
};

/* Load of a loop that is half busy. */
#define REBALANCE_HALF_US (REBALANCE_PLAN_WHOLE_US / 2)

/*
 * rebalance_look_init(r) / rebalance_look_start(r):
 * Initialize `look` and `round` / look now and then each second, unless that goes on already.
 *
 * Thread: main / any
 */
void rebalance_look_init(struct rebalance *r);
void rebalance_look_start(struct rebalance *r);

/* rebalance_answer(r, rc): answer r->ask, if any, by ${rc}. Thread: control loop */
void rebalance_answer(struct rebalance *r, int rc);

#endif
