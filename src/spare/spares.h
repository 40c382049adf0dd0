/* spare/spares: the workers' pools of spare connections to servers. */
#ifndef SPARE_SPARES_H
#define SPARE_SPARES_H

#include "base/must.h"

struct listener_conf;
struct loop_group;
struct loop_group_change;
struct spare_pools_change;
struct spares;
struct upstream_next;
struct worker;

/* A configuration: its listeners, and all its upstreams. */
struct spares_conf {
    const struct listener_conf *listeners;
    unsigned n_listeners;
    const struct upstream_next *upstreams;
    unsigned n_upstreams;
};

/*
 * spares_create(out, loops, workers):
 * Create a pool for each worker.
 *
 * Thread: main, before start
 * Owns:   ${loops} must outlive ${out}; after the end of ${workers} only spares_destroy() may be
 *         called
 * Errors: 0; -ENOMEM
 */
int spares_create(struct spares **out, struct loop_group *loops,
                  struct worker *const *workers) NODISCARD;

/*
 * spares_choose(s, conf, out):
 * Prepare spares for the upstreams that listeners of ${conf} lead to, by `upstream` or by routes.
 * Commit after the upstreams, then call spares_refill().
 *
 * Thread: control loop, or main before start
 * Owns:   as spare_pools_prepare()
 * Errors: 0; -ENOMEM
 */
int spares_choose(const struct spares *s, const struct spares_conf *conf,
                  struct spare_pools_change **out) NODISCARD;

/*
 * spares_prepare(s, change) / spares_cancel(s, change):
 * Create a pool for each new worker / undo that. In a reload, call it before upstreams_complete().
 *
 * Thread: control loop
 * Errors: 0; -ENOMEM
 */
int spares_prepare(struct spares *s, const struct loop_group_change *change) NODISCARD;
void spares_cancel(struct spares *s, const struct loop_group_change *change);

/*
 * spares_refill(s):
 * Let every pool open missing and close surplus connections. Starts the workers' threads.
 */
void spares_refill(const struct spares *s);

/* spares_destroy(s): free ${s}; NULL is allowed. Thread: main, while no worker runs */
void spares_destroy(struct spares *s);

#endif
