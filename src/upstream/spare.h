/*
 * upstream/spare: pool of pre-opened connections to servers.
 *
 *   spare_group   of an upstream: the pools with its spares
 *   spare         of a server: counters, and its part of each pool
 *   spare_pool    of a loop: its parts, for all upstreams; private to the loop
 *
 *   one spare:  opening --connected--> idle --spare_take()--> the session's
 *                  |                     |\--the server speaks--> end soon: closed;
 *                  |                     |                        else: it speaks first
 *                  \--failed: pause      \--expired, ended, unfit, descriptors wanted--> closed
 *
 * Each loop in use keeps an equal share of a server's spares, at least one. The balancer does not
 * count them; they give way to sessions at max_connections. A server that speaks first gets none:
 * it would start a session on each.
 */
#ifndef UPSTREAM_SPARE_H
#define UPSTREAM_SPARE_H

#include <stdint.h>

#include "base/must.h"

struct endpoint_addresses;
struct loop_group;
struct netloop;
struct spare;
struct spare_pool;
struct upstream;
struct upstream_server;

struct spare_conf {
    unsigned keep; /* for each server; 0: none */
    int64_t max_age_ns;
};

struct spare_group {
    struct spare_pool **pools; /* by loop; NULL: none */
    struct loop_group *loops;  /* NULL: one loop, in tests */
    unsigned n_loops;          /* with parts; 0: no spares; control loop */
};

/*
 * spare_group_init(g, conf, loops) / spare_group_close(g):
 * Allocate the pool table, if spares are configured; free it.
 *
 * Thread: before start; after the last loop has ended
 * Errors: 0; -ENOMEM
 */
int spare_group_init(struct spare_group *g, const struct spare_conf *conf,
                     struct loop_group *loops) NODISCARD;
void spare_group_close(struct spare_group *g);

/*
 * spare_group_prepare(up, n) / spare_group_cancel(up):
 * Create parts for ${n} loops, before spare_pool_add() of new ones / free those of loops that did
 * not come, with their pools.
 *
 * Thread: control loop
 * Errors: 0; -ENOMEM
 */
int spare_group_prepare(struct upstream *up, unsigned n) NODISCARD;
void spare_group_cancel(struct upstream *up);

/*
 * spare_group_refresh(g):
 * Have each pool look at its spares after a change of a server.
 *
 * Thread: any
 */
void spare_group_refresh(const struct spare_group *g);

/*
 * spare_create(out, up, server):
 * Prepare spares for ${server}; NULL if ${up} keeps none.
 *
 * Thread: any
 * Owns:   ${up} and ${server} must outlive ${out}
 * Errors: 0; -ENOMEM
 */
int spare_create(struct spare **out, struct upstream *up, struct upstream_server *server) NODISCARD;

/*
 * spare_destroy(sp):
 * Free ${sp} or NULL.
 *
 * Thread: any, after all loops have ended, or have run a control task since ENDPOINT_ABSENT was set
 *         for good (they drop their parts)
 */
void spare_destroy(struct spare *sp);

/*
 * spare_log_stats(sp, name):
 * Log `stats server NAME spares=...` at notice level. NULL is allowed.
 *
 *   spares_opened = idle now + used + expired + closed (by the server) + dropped (server unfit or
 *                   moved, descriptors or connections needed, shutdown)
 *
 * Thread: any
 */
void spare_log_stats(const struct spare *sp, const char *name);

/*
 * spare_pool_create(out, net, number):
 * Create the pool of a loop with this ${number}.
 *
 * Thread: before start
 * Owns:   ${net} is borrowed
 * Errors: 0; -ENOMEM
 */
int spare_pool_create(struct spare_pool **out, struct netloop *net, unsigned number) NODISCARD;

/*
 * spare_pool_add(pool, up):
 * Keep spares for ${up}, if configured.
 *
 * Thread: before the loop starts
 * Owns:   ${up} is borrowed and has no pool of this number yet
 * Errors: 0; -ENOMEM
 */
int spare_pool_add(struct spare_pool *pool, struct upstream *up) NODISCARD;

/*
 * spare_pool_refresh(pool):
 * Submit a control task that closes and opens spares as needed. Starts the loop's thread; no-op
 * when the loop has ended.
 *
 * Thread: any
 */
void spare_pool_refresh(struct spare_pool *pool);

/*
 * spare_pool_stop(pool):
 * Close all spares for good.
 *
 * Thread: loop of ${pool}
 */
void spare_pool_stop(struct spare_pool *pool);

/*
 * spare_pool_destroy(pool):
 * Free ${pool} or NULL.
 *
 * Thread: when its loop has ended or never started
 */
void spare_pool_destroy(struct spare_pool *pool);

/*
 * spare_take(pool, server, at, which):
 * Take the youngest usable spare; a timer opens another. ${pool} may be NULL. ${at}[${which}] is
 * its address; unchanged on failure.
 *
 * Thread: loop of ${pool}
 * Owns:   the caller owns the descriptor, and releases ${at} (endpoint_release_addresses())
 * Errors: -1 (none)
 */
int spare_take(struct spare_pool *pool, struct upstream_server *server,
               struct endpoint_addresses **at, unsigned *which);

/*
 * spare_count_stale(server):
 * Count a taken spare found closed before its first byte.
 *
 * Thread: any
 */
void spare_count_stale(struct upstream_server *server);

#endif
