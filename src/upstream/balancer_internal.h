/*
 * upstream/balancer_internal: data shared by the kinds of balancer. Private to balancer*.c.
 *
 * A place is an index of `list`, which is sorted by level. Each level that is not empty is a pool
 * with its own table. Within a pool, endpoints of equal weight form a run, heaviest first. (FIRST
 * keeps the configuration order and has no runs.) A kind only offers places in some order;
 * balancer_offer() decides for all kinds.
 *
 *   place   0              pools[1].from         n
 *           |   pools[0]   |      pools[1]       |        no pool is empty
 *
 * note: totals. The pool totals (fit weight and what follows from it) are recomputed by the first
 * pick after a flag has changed, and cached in one word with the change count they belong to.
 * Threads may race here; a slow one may store older totals over newer. Their count does not match
 * then, and the next pick recomputes.
 */
#ifndef UPSTREAM_BALANCER_INTERNAL_H
#define UPSTREAM_BALANCER_INTERNAL_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cache_line.h"
#include "upstream/balancer.h"

/* Places drawn at random or in turn before all of them are searched. */
#define BALANCER_DRAWS 64

#define BALANCER_NOWHERE UINT32_MAX

/* No place: one more than the last index. */
#define BALANCER_NOBODY UINT16_MAX

/* Places [from, to) of equal weight in one pool, in configuration order. */
struct balancer_run {
    unsigned weight;
    unsigned from;
    unsigned to;
};

struct balancer_pool {
    unsigned from;
    unsigned n;
    struct balancer_run *runs;
    unsigned n_runs; /* at most 256 */
    uint16_t *table; /* ROUND_ROBIN, RANDOM: places of one cycle */
    uint32_t table_len;
    uint64_t *hashes; /* SOURCE_HASH, MAGLEV: of the endpoints */
    /* MAGLEV: by slot, owner's place + 1; 0: unknown. See note: slots in balancer_rendezvous.c. */
    _Atomic uint16_t *owners;
};

struct balancer {
    const struct balancer_kind_ops *ops;
    unsigned n;
    unsigned hash_balance_factor;
    unsigned panic_threshold;
    int64_t slow_start_ns;
    uint32_t generation;

    /*
     * By place. The load words belong to the endpoints; with their addresses here, a search of all
     * places touches nothing else.
     */
    struct endpoint **list;
    _Atomic uint32_t **loads;
    uint32_t *limits; /* sessions */

    struct endpoint_group *group; /* NULL: no endpoint */
    unsigned n_pools;
    struct balancer_pool pools[BALANCER_LEVELS];
    _Atomic uint64_t totals; /* struct balancer_totals, packed; see note: totals */

    alignas(CACHE_LINE_BYTES) _Atomic uint64_t
        next; /* turn counter; written by each pick, so on its own line */
};

struct balancer_totals {
    uint32_t changes;
    uint32_t weight; /* usable weight in the first pool; 0: no pool has any */
    unsigned first;  /* first pool to use */
    bool panics;
    bool all_warm_up;
    bool shares; /* the first pool has too few fit endpoints: others share its sessions */
};

/* One balancer_pick() within one pool. */
struct balancer_attempt {
    struct balancer *b;
    const struct balancer_pool *pool;
    struct balancer_pick_state *walk;
    uint32_t unfit;  /* flags that exclude an endpoint */
    uint32_t weight; /* usable weight of the pool; 0: unknown */
    bool keyed;      /* the kind hashes the key */
    bool lottery;    /* warming endpoints are accepted by chance */
    bool refused;    /* a warming one was rejected */
    bool busy;       /* an offered one was full */
    struct endpoint *taken;
};

struct balancer_kind_ops {
    int (*build)(const struct balancer *b, struct balancer_pool *pool); /* NULL: no table */
    bool (*choose)(
        struct balancer_attempt *a); /* offer places until one is taken or the kind gives up */
    bool keyed;
    bool in_order; /* configuration order */
};

/*
 * balancer_load(b, place):
 * The load word of ${place}, as endpoint_load().
 *
 * Thread: any
 */
static inline uint32_t balancer_load(const struct balancer *b, unsigned place)
{
    return atomic_load_explicit(b->loads[place], memory_order_relaxed);
}

/*
 * balancer_weight(e):
 * The current weight.
 *
 * Thread: any
 */
static inline unsigned balancer_weight(const struct endpoint *e)
{
    return atomic_load_explicit(&e->weight, memory_order_relaxed);
}

/*
 * balancer_totals(b) / balancer_remember(b, c):
 * The pool totals, recomputed if a flag has changed. Cache them for the next pick.
 *
 * Thread: any
 */
struct balancer_totals balancer_totals(const struct balancer *b);
void balancer_remember(struct balancer *b, const struct balancer_totals *c);

/*
 * balancer_draw_pool(b, c, drawn, last):
 * When pools share (${c}->shares): select one by fit weight with the random number ${drawn}. Pools
 * ${c}->first to ${last} share. Reads all of their endpoints.
 *
 * Thread: any
 */
unsigned balancer_draw_pool(const struct balancer *b, const struct balancer_totals *c,
                            uint64_t drawn, unsigned *last);

/*
 * balancer_offer(a, place):
 * Enter ${place} unless it is unfit, tried, full, or warming up and rejected by chance. True if
 * entered.
 *
 * Thread: any
 */
bool balancer_offer(struct balancer_attempt *a, unsigned place);

/*
 * balancer_takes(a, place):
 * Would balancer_offer() succeed, unless another thread is faster?
 *
 * Thread: any
 */
bool balancer_takes(struct balancer_attempt *a, unsigned place);

/*
 * balancer_open(a, place):
 * True if ${place} is fit and untried.
 *
 * Thread: any
 */
bool balancer_open(const struct balancer_attempt *a, unsigned place);

/*
 * balancer_part(b, e):
 * Slow-start factor of ${e}: below 1 while it warms up. Clears ENDPOINT_WARMING when its time is
 * over.
 *
 * Thread: any
 */
double balancer_part(const struct balancer *b, struct endpoint *e);

/*
 * balancer_is_lucky(a, e):
 * Draw with the probability balancer_part(); always true without ${a}->lottery.
 *
 * Thread: any
 */
bool balancer_is_lucky(const struct balancer_attempt *a, struct endpoint *e);

/*
 * balancer_random():
 * 64 pseudo-random bits.
 *
 * Thread: any
 */
uint64_t balancer_random(void);

/*
 * balancer_turn(b):
 * The next turn number, over all threads.
 *
 * Thread: any
 */
static inline uint64_t balancer_turn(struct balancer *b)
{
    return atomic_fetch_add_explicit(&b->next, 1, memory_order_relaxed);
}

/*
 * balancer_cycle_build(b, pool), balancer_rendezvous_build(), balancer_maglev_build():
 * Build the table of a pool that is not empty.
 *
 * Thread: any
 * Owns:   the caller frees the members of ${pool}, also after an error
 * Errors: 0; -ENOMEM
 */
int balancer_cycle_build(const struct balancer *b, struct balancer_pool *pool) NODISCARD;
int balancer_rendezvous_build(const struct balancer *b, struct balancer_pool *pool) NODISCARD;
int balancer_maglev_build(const struct balancer *b, struct balancer_pool *pool) NODISCARD;

/*
 * balancer_cycle_choose(a), balancer_random_choose(), balancer_least_choose(),
 * balancer_rendezvous_choose(), balancer_maglev_choose():
 * Offer places in the kind's order; see struct balancer_kind_ops.
 *
 * Thread: any
 */
bool balancer_cycle_choose(struct balancer_attempt *a);
bool balancer_random_choose(struct balancer_attempt *a);
bool balancer_least_choose(struct balancer_attempt *a);
bool balancer_rendezvous_choose(struct balancer_attempt *a);
bool balancer_maglev_choose(struct balancer_attempt *a);

#endif
