/*
 * sessions/session_spread: after a change of the number of workers, moves sessions until no parked
 * loop has any, and added loops have their share.
 *
 *   begin -> round: each loop gives sessions, some at a time, with pauses -> summary in the log
 *         -> [some stay on parked loops] -> a round each second, until they moved or ended
 *
 * A session goes to the loop in use that has the fewest. Those that cannot move now are counted by
 * the obstacle (service/session_move). Loops in use give sessions only after loops were added.
 */
#ifndef SESSIONS_SESSION_SPREAD_H
#define SESSIONS_SESSION_SPREAD_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/must.h"
#include "service/session_move.h"
#include "sessions/session_scan.h"

struct loop;
struct session_spread;

struct session_spread_conf {
    struct loop *control;
    struct session_scan_workers workers; /* must outlive the spread */
    const atomic_bool *draining;
};

struct session_spread_figures {
    unsigned workers; /* in use */
    uint64_t sessions_moved;
    uint64_t staying[SESSION_OBSTACLES]; /* on parked loops, at the last round */
};

/*
 * session_spread_create(out, conf):
 * Create a spread that has nothing to do, for the present number of workers.
 *
 * Thread: main, before start
 * Errors: 0; -ENOMEM
 */
int session_spread_create(struct session_spread **out,
                          const struct session_spread_conf *conf) NODISCARD;

/* session_spread_begin(sp): the number of loops in use has changed: move what has to move. */
void session_spread_begin(struct session_spread *sp);

/* session_spread_figures(sp): return what has moved and what stays; not of one instant. */
struct session_spread_figures session_spread_figures(const struct session_spread *sp);

/* session_spread_destroy(sp): free ${sp}; NULL is allowed. Thread: main, while no loop runs */
void session_spread_destroy(struct session_spread *sp);

#endif
