/* spare/spare_pools: the loops' pools of spare connections, and the upstreams that use them. */
#ifndef SPARE_SPARE_POOLS_H
#define SPARE_SPARE_POOLS_H

#include "base/must.h"

struct loop_group;
struct netloop;
struct spare_pool;
struct spare_pools;
struct spare_pools_change;
struct upstream;

/* Upstreams whose servers get spares. Immutable; replaced as a whole. */
struct spare_upstreams {
    unsigned n;
    struct upstream *list[];
};

/*
 * spare_pools_create(out, loops):
 * Create the table of pools, without pools and upstreams. ${loops} NULL: one loop, in tests.
 *
 * Thread: main, before start
 * Owns:   ${loops} must outlive ${out}
 * Errors: 0; -ENOMEM
 */
int spare_pools_create(struct spare_pools **out, struct loop_group *loops) NODISCARD;

/*
 * spare_pools_destroy(pools):
 * Free ${pools} with all pools; NULL is allowed.
 *
 * Thread: main, when all loops have ended or never started
 */
void spare_pools_destroy(struct spare_pools *pools);

/*
 * spare_pools_add(pools, net, number, out) / spare_pools_remove(pools, number):
 * Create the pool of the loop ${number}, before the loop starts / free it, if it exists.
 *
 * Thread: control loop, or main before start
 * Owns:   ${pools} owns ${out}; ${net} must live until its loop has ended
 * Errors: 0; -ENOMEM
 */
int spare_pools_add(struct spare_pools *pools, struct netloop *net, unsigned number,
                    struct spare_pool **out) NODISCARD;
void spare_pools_remove(struct spare_pools *pools, unsigned number);

/*
 * spare_pools_wanted(pools):
 * Return the current upstreams, valid within the task.
 *
 * Thread: a loop of ${pools}, or control loop
 */
const struct spare_upstreams *spare_pools_wanted(const struct spare_pools *pools);

/*
 * spare_pools_prepare(pools, list, n, out), spare_pools_commit(change),
 * spare_pools_cancel(change):
 * Prepare to keep spares for the ${n} upstreams in ${list} only / apply the change / free the
 * uncommitted ${change}.
 *
 * Thread: control loop, or main before start
 * Owns:   ${list} is copied; the upstreams must live until a grace period after a commit without
 *         them
 * Errors: 0; -ENOMEM
 */
int spare_pools_prepare(struct spare_pools *pools, struct upstream *const *list, unsigned n,
                        struct spare_pools_change **out) NODISCARD;
void spare_pools_commit(struct spare_pools_change *change);
void spare_pools_cancel(struct spare_pools_change *change);

/*
 * spare_pools_refresh(pools):
 * Call spare_pool_refresh() for each pool, if spares are or were in use.
 */
void spare_pools_refresh(struct spare_pools *pools);

#endif
