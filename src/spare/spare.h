/*
 * spare/spare: spare connections, opened in advance to servers.
 *
 *   upstream_spares  of an upstream: the pools of all loops
 *   spare            of a server: counters, and a part (spare_list) for each loop
 *   spare_pool       of a loop: the parts of all servers on this loop; private to the loop
 *
 *   one spare:  opening --connected--> idle --spare_take()--> the session's
 *                  |                     |\--the server sends--> closed; if the server does not end
 *                  |                     |                       it soon, the server speaks first
 *                  \--failed: pause      \--expired, ended, unfit, descriptors wanted--> closed
 *
 * Each loop in use keeps an equal share of a server's spares, at least one. The balancer does not
 * count spares; at max_connections spares are closed to make way for sessions. A server that speaks
 * first, before a client does, gets no spares: it would treat each as a client.
 */
#ifndef SPARE_SPARE_H
#define SPARE_SPARE_H

#include <stdbool.h>

#include "base/must.h"

struct session_spare;
struct session_spares;
struct spare_pool;
struct upstream;
struct upstream_server;
struct upstream_spares;
struct upstream_spares_ops;

/*
 * The operations for upstreams that may have spare connections. Of the figures:
 * spares_opened = open now + used + expired + closed (by the server) + dropped (server unfit or
 *                 moved, other TLS, descriptors or connections needed, shutdown).
 */
extern const struct upstream_spares_ops spare_upstream_ops;

/*
 * spare_add_loops(up, n) / spare_drop_loops(up):
 * Add parts for ${n} loops, before their pools exist / free the parts of loops that do not exist.
 *
 * Thread: control loop
 * Errors: 0; -ENOMEM
 */
int spare_add_loops(struct upstream *up, unsigned n) NODISCARD;
void spare_drop_loops(struct upstream *up);

/* spare_refresh(s): have each pool check its spares. */
void spare_refresh(struct upstream_spares *s);

/*
 * spare_pool_refresh(pool):
 * Submit a task that arms the timer of each part, which closes and opens spares as needed. Starts
 * the loop's thread; does nothing if the loop has ended.
 */
void spare_pool_refresh(struct spare_pool *pool);

/*
 * spare_pool_stop(pool):
 * Stop giving spares, and arm the timer of each part, which closes all its spares.
 *
 * Thread: loop of ${pool}
 */
void spare_pool_stop(struct spare_pool *pool);

/* spare_pool_sessions(pool): ${pool} as sessions and their worker use it. */
struct session_spares *spare_pool_sessions(struct spare_pool *pool);

/*
 * spare_take(pool, server, out):
 * Take the youngest usable spare; a timer replaces it. ${pool} may be NULL.
 *
 * Thread: loop of ${pool}
 * Owns:   the caller owns all in ${out}
 * Errors: false (no usable spare)
 */
bool spare_take(struct spare_pool *pool, struct upstream_server *server, struct session_spare *out);

/*
 * spare_count_stale(server):
 * Count a taken spare that was replaced because the server had closed it.
 */
void spare_count_stale(struct upstream_server *server);

#endif
