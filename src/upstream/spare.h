/*
 * upstream/spare: spare connections, opened in advance to servers.
 *
 *   spare_group   of an upstream: the pools of all loops
 *   spare         of a server: counters, and a part (spare_list) for each loop
 *   spare_pool    of a loop: the parts of all servers on this loop; private to the loop
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
#ifndef UPSTREAM_SPARE_H
#define UPSTREAM_SPARE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "balance/server_tls.h"
#include "base/must.h"

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
    unsigned keep; /* spares of each server; 0: none */
    int64_t max_age_ns;
};

struct spare_group {
    struct loop_group *loops; /* NULL: one loop, in tests */
    /* Set by the first spare_pools_commit() with this upstream; NULL before. */
    _Atomic(struct spare_pools *) pools;
    atomic_bool is_wanted; /* a listener uses the upstream */
    atomic_uint changes;   /* how often the settings that spares are made with have changed */
};

/* spare_is_same(a, b): may spares made with ${a} be used with ${b}, TLS aside? */
bool spare_is_same(const struct upstream_conf *a, const struct upstream_conf *b);

/*
 * spare_group_init(g, loops):
 * Initialize ${g}, without pools.
 *
 * Thread: any, before ${g} is shared
 * Owns:   ${loops} must outlive ${g}
 */
void spare_group_init(struct spare_group *g, struct loop_group *loops);

/*
 * spare_group_prepare(up, n) / spare_group_cancel(up):
 * Add parts for ${n} loops, before their pools exist / free the parts of loops that do not exist.
 *
 * Thread: control loop
 * Errors: 0; -ENOMEM
 */
int spare_group_prepare(struct upstream *up, unsigned n) NODISCARD;
void spare_group_cancel(struct upstream *up);

/* spare_group_refresh(g): have each pool check its spares. */
void spare_group_refresh(struct spare_group *g);

/*
 * spare_create(out, up, server):
 * Create the spare object of ${server}, with an empty part for each loop of ${up}.
 *
 * Thread: control loop, or main before start
 * Owns:   ${up} and ${server} must outlive ${out}
 * Errors: 0; -ENOMEM
 */
int spare_create(struct spare **out, struct upstream *up, struct upstream_server *server) NODISCARD;

/*
 * spare_prepare(sp):
 * Add parts for loops added while ${sp} was not used.
 *
 * Thread: control loop
 * Errors: 0; -ENOMEM
 */
int spare_prepare(struct spare *sp) NODISCARD;

/*
 * spare_is_wanted(conf, line):
 * Does ${conf} keep spares for servers of ${line}? Backups get spares only if all used servers are
 * backups. A PROXY header before TLS forbids spares, because it names the client.
 */
bool spare_is_wanted(const struct upstream_conf *conf, const struct upstream_server_conf *line);

/*
 * spare_set_wanted(sp, is_wanted):
 * Allow or forbid spares. ${sp} may be NULL.
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
 * Show ${v} the counters of the server ${object}. ${sp} may be NULL.
 *
 *   spares_opened = open now + used + expired + closed (by the server) + dropped (server unfit or
 *                   moved, other TLS, descriptors or connections needed, shutdown)
 */
void spare_figures(const struct spare *sp, const struct figure_object *object,
                   struct figure_visitor *v);

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

/*
 * spare_take(pool, server, out):
 * Take the youngest usable spare; a timer replaces it. ${pool} may be NULL.
 *
 * Thread: loop of ${pool}
 * Owns:   the caller owns all in ${out}, and releases the addresses (endpoint_release_addresses())
 * Errors: false (no usable spare)
 */
struct spare_taken {
    int fd;
    struct endpoint_addresses *addresses;
    unsigned which; /* index of the connected address */
    struct server_tls_taken tls;
};

bool spare_take(struct spare_pool *pool, struct upstream_server *server, struct spare_taken *out);

/*
 * spare_count_stale(server):
 * Count a taken spare that was replaced because the server had closed it.
 */
void spare_count_stale(struct upstream_server *server);

#endif
