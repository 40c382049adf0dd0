/*
 * upstream/spare_internal: what the parts of spare know of each other: spare.c (what all loops
 * share), spare_pool.c (what one loop keeps) and spare_list.c (what it keeps of one server).
 * Private to them.
 */
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
    SPARE_FAILED, /* to be opened */
    SPARE_USED,
    SPARE_MISSED, /* a session wanted one, and there was none */
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
    uint64_t drawn; /* random numbers */
    bool stopped;
    /*
     * note: looking. Set by who asks for a look, which is queued then; cleared by the look before
     * it looks. Both are exchanges, so that who finds it set knows that what he saw changed will be
     * seen.
     */
    atomic_bool looking;
    struct task look;
};

/* Of one server on one loop, which alone touches it once it has begun to. */
struct spare_list {
    alignas(CACHE_LINE_BYTES) struct spare *spare;
    struct list link;        /* among those of the pool */
    struct spare_pool *pool; /* NULL: the loop has nothing of it */
    struct list opening;
    struct list idle;                  /* the youngest last */
    struct list spoken;                /* idle until the server said something */
    unsigned n;                        /* on all three */
    int64_t not_before_ns;             /* no other is opened */
    int64_t paused_until_ns, pause_ns; /* for the last failure; 0: there was none */
    struct timer timer;
};

struct spare {
    struct upstream *up;
    struct upstream_server *server;
    unsigned share;           /* of each loop */
    atomic_uint n;            /* all there are, those that are being opened among them */
    atomic_bool speaks_first; /* none are kept any more */
    atomic_bool failing;      /* it is in the log that none can be opened */
    _Atomic uint64_t counts[SPARE_COUNTS]; /* relaxed: numbers on their own */
    struct spare_list parts[];             /* one for each loop */
};

/*
 * spare_count(sp, what):
 * One more of these.
 *
 * Thread: any
 */
static inline void spare_count(struct spare *sp, enum spare_count what)
{
    atomic_fetch_add_explicit(&sp->counts[what], 1, memory_order_relaxed);
}

/*
 * spare_now(sp) / spare_crowded(sp, spares):
 * How many there are, those that are being opened among them; with so many, are there more
 * connections to the server than it may have?
 *
 * Thread: any
 */
static inline unsigned spare_now(const struct spare *sp)
{
    return atomic_load_explicit(&sp->n, memory_order_relaxed);
}

static inline bool spare_crowded(const struct spare *sp, unsigned spares)
{
    const struct endpoint *e = &sp->server->endpoint;

    return e->max_connections > 0 && endpoint_active(e) + spares > e->max_connections;
}

/*
 * spare_pool_wants(pool, sp):
 * Are any of ${sp} to be kept there now?
 *
 * Thread: loop of ${pool}
 */
bool spare_pool_wants(const struct spare_pool *pool, const struct spare *sp);

/*
 * spare_list_begin(part, pool) / spare_list_end(part):
 * ${part} is one of ${pool} from now on, and keeps its server from going away; or no longer, and
 * nothing of it is left on the loop.
 *
 * Thread: loop of ${pool}
 */
void spare_list_begin(struct spare_list *part, struct spare_pool *pool);
void spare_list_end(struct spare_list *part);

/*
 * spare_list_look(part):
 * Close what is not to be kept, and open what is missing. If none are wanted, nothing of ${part} is
 * left on the loop.
 *
 * Thread: loop of ${part}
 */
void spare_list_look(struct spare_list *part);

/*
 * spare_list_take(part, at, which):
 * The part's side of spare_take().
 *
 * Thread: loop of ${part}
 * Owns, Errors: as spare_take()
 */
int spare_list_take(struct spare_list *part, struct endpoint_addresses **at, unsigned *which);

#endif
