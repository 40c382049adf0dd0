/*
 * balance/balancer_internal: shared by the kinds of balancer.
 *
 * A place is an index of `list`, which is sorted by level. Each level with endpoints is a pool with
 * its own table. In a pool, endpoints of equal weight form a run, heaviest first (FIRST keeps
 * configuration order, without runs). Kinds of balancer offer places; balancer_offer() accepts or
 * rejects each.
 *
 *   place   0              pools[1].from         n
 *           |   pools[0]   |      pools[1]       |        no pool is empty
 *
 * note: totals. The first pick after a flag change recomputes the totals and caches them in one
 * word with the change count. If a race leaves older totals there, the next pick sees their older
 * count and recomputes.
 */
#ifndef BALANCE_BALANCER_INTERNAL_H
#define BALANCE_BALANCER_INTERNAL_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "balance/balancer.h"
#include "base/cache_line.h"

/* Rejected draws after which all places are searched. */
#define BALANCER_DRAWS 64

#define BALANCER_NO_PLACE32 UINT32_MAX

#define BALANCER_NO_PLACE16 UINT16_MAX

/* Places [from, to) of equal weight, in configuration order. */
struct balancer_run {
    unsigned weight;
    unsigned from;
    unsigned to;
};

struct balancer_pool {
    unsigned level;
    unsigned from;
    unsigned n;
    struct balancer_run *runs;
    unsigned n_runs;
    uint16_t *table; /* ROUND_ROBIN, RANDOM, LEAST_TIME: places of one cycle */
    uint32_t table_len;
    uint64_t *hashes; /* SOURCE_HASH, MAGLEV: hashes of the endpoints */
    /*
     * MAGLEV: for each slot, place of its owner + 1; 0: unknown. See note: slots in
     * balancer_rendezvous.c.
     */
    _Atomic uint16_t *owners;
};

struct balancer {
    const struct balancer_kind_ops *ops;
    unsigned n;
    unsigned hash_balance_factor;
    bool by_address;
    unsigned panic_threshold;
    bool spills;
    bool stays;
    bool is_single; /* `stays`, with one endpoint in use */
    int64_t slow_start_ns;
    uint32_t generation;

    /* Arrays by place. A search reads only `loads`, pointers to the endpoints' load words. */
    struct endpoint **list;
    _Atomic uint32_t **loads;
    uint32_t *limits; /* maximum sessions */
    uint16_t *weights;

    struct endpoint_group *group; /* NULL: the balancer is empty */
    unsigned n_pools;
    struct balancer_pool pools[BALANCER_LEVELS];
    _Atomic uint64_t totals; /* packed; see note: totals */
    /* A place in use, with `is_single` the only one, else any of its pool; see note: in use. */
    _Atomic uint32_t in_use;
    uint32_t settled_as; /* the group's `in_use` then; under its lock */

    alignas(CACHE_LINE_BYTES) _Atomic uint64_t next; /* turn number; most picks write it */
};

struct balancer_totals {
    uint32_t changes;
    uint32_t weight; /* usable weight of pool `first`; 0: no pool has usable endpoints */
    unsigned first;
    bool panics;
    bool all_warm_up;
    bool shares; /* higher pools share the sessions of `first` */
};

/* One balancer_pick() within one pool. */
struct balancer_attempt {
    struct balancer *b;
    const struct balancer_pool *pool;
    struct balancer_pick_state *pick;
    uint32_t unfit;  /* flags that exclude an endpoint */
    uint32_t weight; /* usable weight of the pool; 0: unknown */
    bool keyed;      /* this kind of balancer hashes the key */
    bool lottery;    /* accept warming endpoints by chance */
    bool refused;    /* slow start rejected an offered endpoint */
    bool busy;       /* an offered endpoint was full */
    struct endpoint *taken;
};

/* balancer_hash_of(b, e): return the hash that hashing kinds know ${e} by. */
static inline uint64_t balancer_hash_of(const struct balancer *b, const struct endpoint *e)
{
    return b->by_address ? e->address_hash : e->hash;
}

struct balancer_kind_ops {
    int (*build)(const struct balancer *b, struct balancer_pool *pool); /* NULL: no table */
    bool (*choose)(struct balancer_attempt *a);                         /* false: none was taken */
    bool keyed;
    bool in_order; /* keep the configuration order */
};

/*
 * balancer_load(b, place) / balancer_weight(b, place):
 * Load word of the endpoint at ${place} / its weight.
 */
static inline uint32_t balancer_load(const struct balancer *b, unsigned place)
{
    return atomic_load_explicit(b->loads[place], memory_order_relaxed);
}

static inline unsigned balancer_weight(const struct balancer *b, unsigned place)
{
    return b->weights[place];
}

/* balancer_pool_of(b, place): return the number of the pool of ${place}. */
static inline unsigned balancer_pool_of(const struct balancer *b, uint32_t place)
{
    unsigned pool = b->n_pools - 1;

    while (b->pools[pool].from > place)
        pool--;
    return pool;
}

/*
 * balancer_totals(b) / balancer_remember(b, c):
 * balancer_totals: return current totals; recompute them after a flag change.
 * balancer_remember: cache the totals ${c}.
 */
struct balancer_totals balancer_totals(const struct balancer *b);
void balancer_remember(struct balancer *b, const struct balancer_totals *c);

/*
 * balancer_settle_if_due(b):
 * Call balancer_settle() and return true, if the endpoints in use have failed and others are fit.
 */
bool balancer_settle_if_due(struct balancer *b);

/*
 * balancer_draw_pool(b, c, drawn, last):
 * Set ${last}: the pools from ${c}->first to ${last} share sessions. Return one of them, selected
 * by the weight of fit endpoints and the random number ${drawn}. Reads all endpoints.
 */
unsigned balancer_draw_pool(const struct balancer *b, const struct balancer_totals *c,
                            uint64_t drawn, unsigned *last);

/*
 * balancer_offer(a, place) / balancer_offer_warm(a, place):
 * balancer_offer: add a session to ${place}; false if it is unfit, tried, full or rejected by slow
 * start.
 * balancer_offer_warm: the same without slow start, for kinds that apply it themselves.
 *
 * balancer_takes(a, place) / balancer_open(a, place):
 * balancer_takes: would balancer_offer() succeed now?
 * balancer_open: is ${place} fit and untried?
 */
bool balancer_offer(struct balancer_attempt *a, unsigned place);
bool balancer_offer_warm(struct balancer_attempt *a, unsigned place);
bool balancer_takes(struct balancer_attempt *a, unsigned place);
bool balancer_open(const struct balancer_attempt *a, unsigned place);

/*
 * balancer_try(a):
 * Offer places in this kind's order; if slow start rejected one, again without slow start; then
 * every place. False: none was taken.
 */
bool balancer_try(struct balancer_attempt *a);

/*
 * balancer_part(b, e) / balancer_warmup_draw(a, e):
 * balancer_part: slow-start factor of ${e}, below 1 while it is warming; clears ENDPOINT_WARMING
 * when slow start is over.
 * balancer_warmup_draw: true with this probability, or if ${a}->lottery is off.
 */
double balancer_part(const struct balancer *b, struct endpoint *e);
bool balancer_warmup_draw(const struct balancer_attempt *a, struct endpoint *e);

/*
 * balancer_random() / balancer_turn(b):
 * 64 pseudo-random bits / the next turn number, counted over all threads.
 */
uint64_t balancer_random(void);

static inline uint64_t balancer_turn(struct balancer *b)
{
    return atomic_fetch_add_explicit(&b->next, 1, memory_order_relaxed);
}

/*
 * balancer_cycle_build(b, pool), balancer_rendezvous_build(), balancer_maglev_build():
 * Build a pool's table.
 *
 * Owns:   the caller frees the members of ${pool}, also after an error
 * Errors: 0; -ENOMEM
 */
int balancer_cycle_build(const struct balancer *b, struct balancer_pool *pool) NODISCARD;
int balancer_rendezvous_build(const struct balancer *b, struct balancer_pool *pool) NODISCARD;
int balancer_maglev_build(const struct balancer *b, struct balancer_pool *pool) NODISCARD;

/*
 * balancer_cycle_choose(a), balancer_random_choose(), balancer_least_choose(),
 * balancer_rendezvous_choose(), balancer_maglev_choose(), balancer_time_choose():
 * Offer places until one is taken; false if none is.
 */
bool balancer_cycle_choose(struct balancer_attempt *a);
bool balancer_random_choose(struct balancer_attempt *a);
bool balancer_least_choose(struct balancer_attempt *a);
bool balancer_rendezvous_choose(struct balancer_attempt *a);
bool balancer_maglev_choose(struct balancer_attempt *a);
bool balancer_time_choose(struct balancer_attempt *a);

#endif
