/* spare/spare_internal: pools, parts and counters of spare connections. */
#ifndef SPARE_SPARE_INTERNAL_H
#define SPARE_SPARE_INTERNAL_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/cache_line.h"
#include "base/list.h"
#include "engine/loop.h"
#include "service/session_spares.h"
#include "spare/spare.h"
#include "spare/spare_pools.h"
#include "upstream/upstream.h"

enum spare_count {
    SPARE_OPENED,
    SPARE_FAILED, /* failed to open */
    SPARE_USED,
    SPARE_MISSED, /* a session found none */
    SPARE_EXPIRED,
    SPARE_CLOSED,
    SPARE_DROPPED,
    SPARE_REPLACED,
    SPARE_COUNTS
};

_Static_assert(SPARE_COUNTS <= UPSTREAM_SPARE_COUNTS, "struct upstream_spare has the counters");

struct spare_pool {
    struct session_spares sessions;
    struct netloop *net;
    unsigned number; /* of the loop */
    const struct spare_pools *pools;
    struct list parts;
    uint64_t drawn; /* counter for random numbers */
    bool stopped;
    /*
     * note: looking. Set when the task `look` is queued, cleared before the task looks at spares.
     * Both are exchanges: if a thread finds the flag set, the task will see the thread's change.
     */
    atomic_bool looking;
    struct task look;
};

/* A part: the spares of one server on one loop. Private to the loop after spare_list_begin(). */
struct spare_list {
    alignas(CACHE_LINE_BYTES) struct spare *spare;
    struct list link;
    struct spare_pool *pool; /* NULL: not linked to a pool */
    struct list opening;
    struct list idle;                  /* youngest last */
    struct list spoken;                /* spares to which the server sent bytes */
    unsigned n;                        /* spares in the three lists */
    int64_t not_before_ns;             /* no connect before this time */
    int64_t paused_until_ns, pause_ns; /* last pause after a failure; 0: none */
    struct timer timer;
};

struct spare {
    struct upstream_spare base;
    struct upstream *up;
    struct upstream_server *server;
    atomic_uint n;            /* spares on all loops, also in `opening` */
    atomic_bool is_wanted;    /* the configuration keeps spares */
    atomic_bool speaks_first; /* the server sends first: keep none */
    atomic_bool failing;      /* a failure to open was logged */
    struct spare_parts *more; /* for loops added later */
    unsigned n_parts;
    struct spare_list parts[];
};

/* Parts for loops added later. A loop reads only up to its own element, so more can be appended. */
struct spare_parts {
    struct spare_parts *next;
    unsigned first, end; /* for loops [first, end) */
    alignas(CACHE_LINE_BYTES) struct spare_list parts[];
};

/* spare_of(server): the spare object of ${server}, or NULL. */
static inline struct spare *spare_of(const struct upstream_server *server)
{
    struct upstream_spare *base = atomic_load(&server->spare);

    return base ? CONTAINER_OF(base, struct spare, base) : NULL;
}

/* spare_count(sp, what): increment a counter. */
static inline void spare_count(struct spare *sp, enum spare_count what)
{
    atomic_fetch_add_explicit(&sp->base.counts[what], 1, memory_order_relaxed);
}

/*
 * spare_now(sp) / spare_over_limit(sp, spares):
 * Number of spares on all loops / do ${spares} and the server's sessions exceed max_connections?
 */
static inline unsigned spare_now(const struct spare *sp)
{
    return atomic_load_explicit(&sp->n, memory_order_relaxed);
}

static inline bool spare_over_limit(const struct spare *sp, unsigned spares)
{
    const struct endpoint *e = &sp->server->endpoint;
    unsigned max = atomic_load_explicit(&e->max_connections, memory_order_relaxed);

    return max > 0 && endpoint_active(e) + spares > max;
}

/*
 * spare_part(sp, number) / spare_share(part):
 * Return the part of the loop ${number}, or NULL / the number of spares to keep in ${part}.
 *
 * Thread: loop
 */
struct spare_list *spare_part(struct spare *sp, unsigned number);
unsigned spare_share(const struct spare_list *part);

/*
 * spare_pool_wants(pool, sp):
 * May the server of ${sp} have spares in ${pool} now?
 *
 * Thread: loop of ${pool}
 */
bool spare_pool_wants(const struct spare_pool *pool, const struct spare *sp);

/*
 * spare_pool_create(out, pools, net, number) / spare_pool_destroy(pool):
 * Create the pool of a loop with this ${number} / free it, or NULL.
 *
 * Thread: any, while its loop does not run
 * Owns:   ${pools} must outlive ${out}; ${net} must live until its loop has ended
 * Errors: 0; -ENOMEM
 */
int spare_pool_create(struct spare_pool **out, const struct spare_pools *pools, struct netloop *net,
                      unsigned number) NODISCARD;
void spare_pool_destroy(struct spare_pool *pool);

/*
 * spare_pace_jitter_ns(pool, ns):
 * Shorten ${ns} at random by up to a quarter, to spread the timers.
 *
 * Thread: loop of ${pool}
 */
int64_t spare_pace_jitter_ns(struct spare_pool *pool, int64_t ns);

/*
 * spare_pace_arm(part, at_ns) / spare_pace_not_before(part, at_ns) /
 * spare_pace_pause(part, begun_at_ns):
 * Run the timer at ${at_ns} at the latest / open no spare before ${at_ns} / pause after an attempt
 * that began at ${begun_at_ns} and failed or was rejected.
 *
 * Thread: loop of ${part}
 */
void spare_pace_arm(struct spare_list *part, int64_t at_ns);
void spare_pace_not_before(struct spare_list *part, int64_t at_ns);
void spare_pace_pause(struct spare_list *part, int64_t begun_at_ns);

/*
 * spare_list_begin(part, pool) / spare_list_end(part):
 * Link ${part} to ${pool} and reference its server / close the spares of ${part}, unlink it and
 * release its server, which may free ${part}.
 *
 * Thread: loop of ${pool}
 */
void spare_list_begin(struct spare_list *part, struct spare_pool *pool);
void spare_list_end(struct spare_list *part);

/*
 * spare_list_refresh(part):
 * Close unwanted spares and open missing ones; if none are wanted, cancel the timer.
 *
 * Thread: loop of ${part}
 */
void spare_list_refresh(struct spare_list *part);

/*
 * spare_list_take(part, out):
 * Take a spare of ${part}.
 *
 * Thread: loop of ${part}
 * Owns, Errors: as spare_take()
 */
bool spare_list_take(struct spare_list *part, struct session_spare *out);

/*
 * spare_pace_worked(sp):
 * Note that a spare connection of ${sp} was opened, and is accepted.
 *
 * Thread: loop
 */
void spare_pace_worked(struct spare *sp);

#endif
