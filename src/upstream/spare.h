/*
 * upstream/spare: pool of pre-opened connections to servers.
 *
 *   spare_group   of an upstream: its pools
 *   spare         of a server: counters, and its part of each pool
 *   spare_pool    of a loop: its parts, for all upstreams; private to the loop
 *
 *   one spare:  opening --connected--> idle --spare_take()--> the session's
 *                  |                     |\--the server sends--> closed; if the server does not end
 *                  |                     |                       it soon, the server speaks first
 *                  \--failed: pause      \--expired, ended, unfit, descriptors wanted--> closed
 *
 * Each loop in use keeps an equal share of a server's spares, at least one. The balancer does not
 * count spares; at max_connections spares are closed to make way for sessions. A server that speaks
 * first, before a client does, gets no spares: it would take each for a client.
 */
#ifndef UPSTREAM_SPARE_H
#define UPSTREAM_SPARE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "upstream/server_tls.h"

struct figure_object;
struct figure_visitor;
struct endpoint_addresses;
struct loop_group;
struct netloop;
struct spare;
struct spare_pool;
struct spare_pools;
struct upstream;
struct upstream_conf;
struct upstream_server;
struct upstream_server_conf;

struct spare_conf {
    unsigned keep; /* for each server; 0: none */
    int64_t max_age_ns;
};

struct spare_group {
    struct loop_group *loops; /* NULL: one loop, in tests */
    /* Set once, by spare_pools_commit(). NULL: no listener has used spares so far. */
    _Atomic(struct spare_pools *) pools;
    atomic_bool is_wanted; /* a listener uses the upstream */
};

/*
 * spare_group_init(g, loops):
 *
 * Thread: any, before other threads can use ${g}
 * Owns:   ${loops} must outlive ${g}
 */
void spare_group_init(struct spare_group *g, struct loop_group *loops);

/*
 * spare_group_prepare(up, n) / spare_group_cancel(up):
 * Create parts for ${n} loops, before their pools / free the parts of loops that were not created.
 *
 * Thread: control loop
 * Errors: 0; -ENOMEM
 */
int spare_group_prepare(struct upstream *up, unsigned n) NODISCARD;
void spare_group_cancel(struct upstream *up);

/*
 * spare_group_refresh(g):
 * A server changed: have each pool check its spares.
 *
 * Thread: any
 */
void spare_group_refresh(struct spare_group *g);

/*
 * spare_create(out, up, server):
 * Create the spares of ${server}, with a part for each loop of ${up}.
 *
 * Thread: control loop, or main before start
 * Owns:   ${up} and ${server} must outlive ${out}
 * Errors: 0; -ENOMEM
 */
int spare_create(struct spare **out, struct upstream *up, struct upstream_server *server) NODISCARD;

/*
 * spare_prepare(sp):
 * Create parts for loops that came while ${sp} was not used.
 *
 * Thread: control loop
 * Errors: 0; -ENOMEM
 */
int spare_prepare(struct spare *sp) NODISCARD;

/*
 * spare_is_wanted(conf, line):
 * Does ${conf} keep spares for servers of ${line}? Not for backups, unless all servers are backups;
 * not if a PROXY header, which names the client, comes before TLS.
 *
 * Thread: any
 */
bool spare_is_wanted(const struct upstream_conf *conf, const struct upstream_server_conf *line);

/*
 * spare_set_wanted(sp, is_wanted):
 * Keep spares, or none. NULL is allowed.
 *
 * Thread: control loop
 */
void spare_set_wanted(struct spare *sp, bool is_wanted);

/*
 * spare_destroy(sp):
 * Free ${sp} or NULL.
 *
 * Thread: any, when no loop uses its part: the loop never did, or has called spare_list_end()
 */
void spare_destroy(struct spare *sp);

/*
 * spare_figures(sp, object, v):
 * Visit the counters of the server ${object}. NULL is allowed.
 *
 *   spares_opened = idle now + used + expired + closed (by the server) + dropped (server unfit or
 *                   moved, other TLS, descriptors or connections needed, shutdown)
 *
 * Thread: any
 */
void spare_figures(const struct spare *sp, const struct figure_object *object,
                   struct figure_visitor *v);

/*
 * spare_pool_refresh(pool):
 * Submit a task that has spares closed and opened as needed, by a task of each server. Starts the
 * loop's thread; does nothing if the loop has ended.
 *
 * Thread: any
 */
void spare_pool_refresh(struct spare_pool *pool);

/*
 * spare_pool_stop(pool):
 * Give no spare from now on, and close all, by a task of each server.
 *
 * Thread: loop of ${pool}
 */
void spare_pool_stop(struct spare_pool *pool);

/*
 * spare_take(pool, server, out):
 * Take the youngest usable spare; a timer replaces it. ${pool} may be NULL.
 *
 * Thread: loop of ${pool}
 * Owns:   the caller owns all in ${out}, and releases the addresses (endpoint_release_addresses())
 * Errors: false (none)
 */
struct spare_taken {
    int fd;
    struct endpoint_addresses *addresses;
    unsigned which; /* address that it is connected to */
    struct server_tls_taken tls;
};

bool spare_take(struct spare_pool *pool, struct upstream_server *server, struct spare_taken *out);

/*
 * spare_count_stale(server):
 * Count a taken spare that the server closed before its first byte.
 *
 * Thread: any
 */
void spare_count_stale(struct upstream_server *server);

#endif
