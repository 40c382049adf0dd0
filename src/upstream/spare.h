/*
 * upstream/spare: connections to servers that are open before anybody needs them, so that a session
 * that is sent to a server need not wait until it is connected.
 *
 *   spare_group   of an upstream: the pools that keep its spares
 *   spare         of a server: what is counted of them, and its part of each pool
 *   spare_pool    of a loop: all that it keeps, for all upstreams; no other loop touches a part of
 *                 it
 *
 *   one spare:  opening --connected--> idle --spare_take()--> the session's
 *                  |                     | \--the server speaks--> waits for its end --> closed,
 *                                        or: the server speaks first
 *                  \--failed: pause      \--too old, ended by the server, server unfit, descriptors
 *                  wanted--> closed
 *
 * A server's spares are shared out to the loops, each having the same number of them, at least one.
 * They are no sessions: nothing of the balancer counts them, and they make room where a server may
 * have max_connections only.
 *
 * Spares are for servers that wait for the client to speak. One that speaks first has a session
 * begun for nobody with each of them; when it turns out to be one no more are kept for it. (A
 * server may also say why it closes a connection on which nothing came: that is an end, and bytes
 * count as first words only if no end follows them soon.)
 */
#ifndef UPSTREAM_SPARE_H
#define UPSTREAM_SPARE_H

#include <stdint.h>

#include "base/must.h"

struct endpoint_addresses;
struct netloop;
struct spare;
struct spare_pool;
struct upstream;
struct upstream_server;

struct spare_conf {
    unsigned keep; /* for each server; 0: none */
    int64_t max_age_ns;
};

/* Of an upstream. */
struct spare_group {
    struct spare_pool **pools; /* one for each loop, NULL where none was added */
    unsigned n_loops;          /* 0: none are kept */
};

/*
 * spare_group_init(g, conf, n_loops) / spare_group_close(g):
 * Room for the pools of so many loops, if any spares are to be kept; free it.
 *
 * Thread: before start; after the last loop has ended
 * Errors: 0; -ENOMEM
 */
int spare_group_init(struct spare_group *g, const struct spare_conf *conf,
                     unsigned n_loops) NODISCARD;
void spare_group_close(struct spare_group *g);

/*
 * spare_group_look(g):
 * Something has changed about a server: each pool looks at what it keeps. Costs nothing where none
 * are kept.
 *
 * Thread: any
 */
void spare_group_look(const struct spare_group *g);

/*
 * spare_create(out, up, server):
 * What is needed to keep spares for ${server}; NULL if ${up} keeps none. None is opened before a
 * pool looks.
 *
 * Thread: any
 * Owns:   the caller owns ${out}; ${up} and ${server} must outlive it
 * Errors: 0; -ENOMEM
 */
int spare_create(struct spare **out, struct upstream *up, struct upstream_server *server) NODISCARD;

/*
 * spare_destroy(sp):
 * Free it; NULL is allowed.
 *
 * Thread: any, when all loops have ended; or have run a task since ENDPOINT_ABSENT was set for
 *         good, for with that each pool gives up its part in the control lane
 */
void spare_destroy(struct spare *sp);

/*
 * spare_log_stats(sp, name):
 * Write what was counted to the log at notice level: `stats server NAME spares=...`. Nothing for
 * NULL.
 *
 *   spares_opened = those that are idle now + used + expired + closed (by the server) + dropped
 *   (server unfit, its
 *                   addresses changed, descriptors or places were wanted, the end)
 *
 * Thread: any
 */
void spare_log_stats(const struct spare *sp, const char *name);

/*
 * spare_pool_create(out, net, number):
 * The pool of the loop of ${net}, which is loop ${number} of those that spare_group_init() was told
 * of.
 *
 * Thread: before start
 * Owns:   the caller owns ${out}; ${net} is borrowed
 * Errors: 0; -ENOMEM
 */
int spare_pool_create(struct spare_pool **out, struct netloop *net, unsigned number) NODISCARD;

/*
 * spare_pool_add(pool, up):
 * Keep spares for the servers of ${up}, as far as it wants any.
 *
 * Thread: before start
 * Owns:   ${up} is borrowed, and must have no pool of this number yet
 * Errors: 0; -ENOMEM
 */
int spare_pool_add(struct spare_pool *pool, struct upstream *up) NODISCARD;

/*
 * spare_pool_look(pool):
 * Have the pool close and open what is to be, in the control lane. This starts the thread of the
 * loop if it has none.
 *
 * Thread: any
 * Errors: none; a loop that has ended, or cannot start, has none to look at
 */
void spare_pool_look(struct spare_pool *pool);

/*
 * spare_pool_stop(pool):
 * Close all, and keep none any more.
 *
 * Thread: loop of ${pool}
 */
void spare_pool_stop(struct spare_pool *pool);

/*
 * spare_pool_destroy(pool):
 * Free it; NULL is allowed.
 *
 * Thread: when its loop has ended or was never started
 */
void spare_pool_destroy(struct spare_pool *pool);

/*
 * spare_take(pool, server, at, which):
 * A connection to ${server} on which nothing has moved and whose end has not come in so far; the
 * youngest, whose end is the furthest away. It is replaced behind what the loop has to do now. NULL
 * for a pool is one without spares.
 *
 * ${at}[${which}] is where it leads to; both are left alone when there is none.
 *
 * Thread: loop of ${pool}
 * Owns:   the caller owns the descriptor, and calls endpoint_release_addresses() for ${at}
 * Errors: -1 (there is none)
 */
int spare_take(struct spare_pool *pool, struct upstream_server *server,
               struct endpoint_addresses **at, unsigned *which);

/*
 * spare_replaced(server):
 * A connection that spare_take() gave was found closed before anything moved on it.
 *
 * Thread: any
 */
void spare_replaced(struct upstream_server *server);

#endif
