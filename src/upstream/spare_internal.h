/* upstream/spare_internal: shared by spare.c, spare_pool.c and spare_list.c. */
#ifndef UPSTREAM_SPARE_INTERNAL_H
#define UPSTREAM_SPARE_INTERNAL_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/cache_line.h"
#include "base/list.h"
#include "engine/loop.h"
#include "upstream/upstream.h"

enum spare_count {
    SPARE_OPENED,
    SPARE_FAILED, /* to open */
    SPARE_USED,
    SPARE_MISSED, /* a session found none */
    SPARE_EXPIRED,
    SPARE_CLOSED,
    SPARE_DROPPED,
    SPARE_REPLACED,
    SPARE_COUNTS
};

struct spare_pool {
    struct netloop *net;
    unsigned number;
    unsigned n_upstreams;
    struct upstream **upstreams;
    struct list parts;
    uint64_t drawn; /* random state */
    bool stopped;
    /*
     * note: looking. Set when a look is queued, cleared before it reads. Both are exchanges: if a
     * thread finds it set, the look will see its change.
     */
    atomic_bool looking;
    struct task look;
};

/* One server on one loop; private to the loop once begun. */
struct spare_list {
    alignas(CACHE_LINE_BYTES) struct spare *spare;
    struct list link;
    struct spare_pool *pool; /* NULL: not in use */
    struct list opening;
    struct list idle;                  /* youngest last */
    struct list spoken;                /* idle until the server sent bytes */
    unsigned n;                        /* in all lists */
    int64_t not_before_ns;             /* earliest next connect */
    int64_t paused_until_ns, pause_ns; /* of the last failure; 0: none */
    struct timer timer;
};

struct spare {
    struct upstream *up;
    struct upstream_server *server;
    atomic_uint n;                         /* including `opening` */
    atomic_bool speaks_first;              /* so none are kept */
    atomic_bool failing;                   /* a failure to open was logged */
    _Atomic uint64_t counts[SPARE_COUNTS]; /* relaxed */
    struct spare_parts *more;              /* of loops that came later */
    unsigned n_parts;
    struct spare_list parts[];
};

/* A loop reads up to its own: `next` changes behind it, while loops are prepared. */
struct spare_parts {
    struct spare_parts *next;
    unsigned first, end; /* numbers of their loops */
    alignas(CACHE_LINE_BYTES) struct spare_list parts[];
};

/*
 * spare_count(sp, what):
 * Increment a counter.
 *
 * Thread: any
 */
static inline void spare_count(struct spare *sp, enum spare_count what)
{
    atomic_fetch_add_explicit(&sp->counts[what], 1, memory_order_relaxed);
}

/*
 * spare_now(sp) / spare_over_limit(sp, spares):
 * Number of spares; true if ${spares} and sessions exceed max_connections.
 *
 * Thread: any
 */
static inline unsigned spare_now(const struct spare *sp)
{
    return atomic_load_explicit(&sp->n, memory_order_relaxed);
}

static inline bool spare_over_limit(const struct spare *sp, unsigned spares)
{
    const struct endpoint *e = &sp->server->endpoint;

    return e->max_connections > 0 && endpoint_active(e) + spares > e->max_connections;
}

/*
 * spare_part(sp, number) / spare_share(part):
 * The part of a loop / number of spares to keep there.
 *
 * Thread: the loop
 */
struct spare_list *spare_part(struct spare *sp, unsigned number);
unsigned spare_share(const struct spare_list *part);

/*
 * spare_pool_wants(pool, sp):
 * True if the server may have spares now.
 *
 * Thread: loop of ${pool}
 */
bool spare_pool_wants(const struct spare_pool *pool, const struct spare *sp);

/*
 * spare_list_begin(part, pool) / spare_list_end(part):
 * Link ${part} to ${pool} and hold its server; close its spares and undo that.
 *
 * Thread: loop of ${pool}
 */
void spare_list_begin(struct spare_list *part, struct spare_pool *pool);
void spare_list_end(struct spare_list *part);

/*
 * spare_list_refresh(part):
 * Close unwanted and open missing spares; without any wanted, cancel the timer.
 *
 * Thread: loop of ${part}
 */
void spare_list_refresh(struct spare_list *part);

/*
 * spare_list_take(part, at, which):
 * spare_take() for one part.
 *
 * Thread: loop of ${part}
 * Owns, Errors: as spare_take()
 */
int spare_list_take(struct spare_list *part, struct endpoint_addresses **at, unsigned *which);

#endif
