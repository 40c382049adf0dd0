/*
 * sessions/rebalance: moves sessions from busy loops to idle ones (`rebalance` of [worker]).
 *
 *   main: a loop is half busy -> control loop: looks each second -> round on the busiest loop
 *         -> at the next look: one log line, with the loads before and after
 *
 * Without a loop that is half busy there are no looks, and nothing wakes up.
 */
#ifndef SESSIONS_REBALANCE_H
#define SESSIONS_REBALANCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "engine/task.h"
#include "sessions/rebalance_round.h"
#include "sessions/session_scan.h"

struct figure_visitor;
struct loop;
struct rebalance;

enum rebalance_mode { REBALANCE_OFF, REBALANCE_AUTO };

struct rebalance_conf {
    enum rebalance_mode mode;
    int64_t turn_goal_ns; /* see sessions/rebalance_plan; 0: no goal */
};

struct rebalance_env {
    struct loop *control;
    struct session_scan_workers workers;
    const atomic_bool *draining; /* nothing moves then */
};

/*
 * rebalance_create(out, env):
 * Prepare rebalancing, REBALANCE_OFF.
 *
 * Thread: main, before the loops have threads
 * Owns:   what ${env} points at must live until no loop runs
 * Errors: 0; -ENOMEM
 */
int rebalance_create(struct rebalance **out, const struct rebalance_env *env) NODISCARD;

/* rebalance_use(r, conf): use ${conf} from now on. Thread: control loop, or main before start */
void rebalance_use(struct rebalance *r, const struct rebalance_conf *conf);

/*
 * rebalance_notice(r):
 * Begin to look if a loop is half busy. Call this now and then while loops run turns.
 *
 * Thread: main
 */
void rebalance_notice(struct rebalance *r);

/* One look at an administrator's request. */
struct rebalance_ask {
    /*
     * Called once on the asking loop, unless that has ended. ${rc}: 0; -EBUSY (another request is
     * under way); -ESHUTDOWN (the process drains or stops).
     */
    void (*answered)(struct rebalance_ask *ask, int rc);

    /* Answer. `from`: NULL if no loop is far busier than another; then nothing moves. */
    const char *from, *idlest;
    unsigned load_us, idlest_us; /* their loads before: microseconds in the last second */
    struct rebalance_counts counts;

    struct task task;
    struct rebalance *rebalance;
    struct loop *asker;
    int rc;
};

/*
 * rebalance_ask_begin(r, ask):
 * Look as soon as the loads of sessions are known, after two seconds at most, and move sessions
 * even if the busiest loop was not busy for long.
 *
 * Thread: any loop; it is the asking loop
 * Owns:   ${ask} must live until answered() is called, or the asking loop has ended
 * Errors: as loop_submit(); then answered() is not called
 */
int rebalance_ask_begin(struct rebalance *r, struct rebalance_ask *ask) NODISCARD;

/* rebalance_time_events(workers): have the loads of sessions measured for some seconds. */
void rebalance_time_events(const struct session_scan_workers *workers);

/* rebalance_figures(r, v): visit the figures of ${r}. */
void rebalance_figures(const struct rebalance *r, struct figure_visitor *v);

/* rebalance_destroy(r): free ${r}; NULL is allowed. Thread: main, while no loop runs */
void rebalance_destroy(struct rebalance *r);

#endif
