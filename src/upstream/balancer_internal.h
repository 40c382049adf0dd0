/*
 * upstream/balancer_internal: what the kinds of balancer know of one. Private to balancer*.c.
 *
 * An endpoint has a place: its index in `list`, where level follows level. Each level that is not
 * empty is a pool with a table of its own. Within a pool those of one weight lie side by side, as
 * one run, the heaviest first (for FIRST in the order of the configuration instead, and there are
 * no runs). A kind is no more than an order in which places are offered; whether an offer is taken
 * is decided for all kinds in balancer_offer().
 *
 *   place   0              pools[1].from         n
 *           |   pools[0]   |      pools[1]       |        no pool is empty
 *
 * note: census. How much weight is fit, and what follows from that, is worked out when a mark has
 * changed, by whoever picks next, and kept in one word together with the count of changes it
 * belongs to. Several may do so at the same time, and one that was slow may store an older one over
 * a newer: that does not match the count, and the next pick works it out again.
 */
#ifndef UPSTREAM_BALANCER_INTERNAL_H
#define UPSTREAM_BALANCER_INTERNAL_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cache_line.h"
#include "upstream/balancer.h"

/* How many places are drawn by chance or in turn before all of them are looked at. */
#define BALANCER_DRAWS 64

#define BALANCER_NOWHERE UINT32_MAX

/* No place: BALANCER_MAX_ENDPOINTS is one more than the last one. */
#define BALANCER_NOBODY UINT16_MAX

/*
 * The places [from, to), which are all of one weight in their pool, in the order of the
 * configuration.
 */
struct balancer_run {
    unsigned weight;
    unsigned from;
    unsigned to;
};

struct balancer_pool {
    unsigned from;
    unsigned n;
    struct balancer_run *runs;
    unsigned n_runs; /* 256 at most */
    uint16_t *table; /* ROUND_ROBIN and RANDOM: the places of a cycle */
    uint32_t table_len;
    uint64_t *hashes; /* SOURCE_HASH and MAGLEV: of the endpoints */
    /*
     * MAGLEV: one more than the owner's place, by slot; 0: not known yet; see note: slots in
     * balancer_rendezvous.c
     */
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
     * By place; the loads are those of the endpoints, here so that looking at all of them needs
     * nothing else.
     */
    struct endpoint **list;
    _Atomic uint32_t **loads;
    uint32_t *limits; /* of sessions */

    struct endpoint_group *group; /* NULL: no endpoint */
    unsigned n_pools;
    struct balancer_pool pools[BALANCER_LEVELS];
    _Atomic uint64_t totals; /* struct balancer_totals, packed; see note: census */

    alignas(CACHE_LINE_BYTES) _Atomic uint64_t next; /* turns; every pick writes it */
};

struct balancer_totals {
    uint32_t changes;
    uint32_t weight; /* of those that may be picked in the first pool; 0: there is none in any */
    unsigned first;  /* the pool to begin with */
    bool panics;
    bool all_warm_up;
    bool shares; /* the first pool has too few fit endpoints, and shares its sessions with others */
};

/* One balancer_pick() in one pool. */
struct balancer_attempt {
    struct balancer *b;
    const struct balancer_pool *pool;
    struct balancer_pick_state *walk;
    uint32_t unfit;  /* the marks that rule out */
    uint32_t weight; /* of the pool's that may be picked; 0: not known */
    bool keyed;      /* the kind goes by the key */
    bool lottery;    /* those that warm up may be refused */
    bool refused;    /* one was */
    bool busy;       /* one that was offered has no room */
    struct endpoint *taken;
};

struct balancer_kind_ops {
    int (*build)(const struct balancer *b, struct balancer_pool *pool); /* NULL: no table */
    bool (*choose)(struct balancer_attempt *a); /* offer places until one is taken, or enough */
    bool keyed;
    bool in_order; /* the list is in the order of the configuration */
};

/*
 * balancer_load(b, place):
 * endpoint_load() of the one that is there.
 *
 * Thread: any
 */
static inline uint32_t balancer_load(const struct balancer *b, unsigned place)
{
    return atomic_load_explicit(b->loads[place], memory_order_relaxed);
}

/*
 * balancer_weight(e):
 * Its weight now.
 *
 * Thread: any
 */
static inline unsigned balancer_weight(const struct endpoint *e)
{
    return atomic_load_explicit(&e->weight, memory_order_relaxed);
}

/*
 * balancer_totals(b) / balancer_remember(b, c):
 * What is known of all endpoints now, worked out if it is news; keep it for the next pick.
 *
 * Thread: any
 */
struct balancer_totals balancer_totals(const struct balancer *b);
void balancer_remember(struct balancer *b, const struct balancer_totals *c);

/*
 * balancer_draw_pool(b, c, drawn, last):
 * When pools share (${c}->shares): the pool for a session, by the weight of their fit endpoints and
 * the random number ${drawn}. The pools that share are ${c}->first to ${last}. Looks at all of
 * their endpoints.
 *
 * Thread: any
 */
unsigned balancer_draw_pool(const struct balancer *b, const struct balancer_totals *c,
                            uint64_t drawn, unsigned *last);

/*
 * balancer_offer(a, place):
 * Take ${place} unless it is unfit, was tried, warms up and has bad luck, or is full. True if
 * taken.
 *
 * Thread: any
 */
bool balancer_offer(struct balancer_attempt *a, unsigned place);

/*
 * balancer_takes(a, place):
 * Would balancer_offer() take ${place}, if no other thread is faster?
 *
 * Thread: any
 */
bool balancer_takes(struct balancer_attempt *a, unsigned place);

/*
 * balancer_open(a, place):
 * Would the marks, and what was tried, let ${place} be taken?
 *
 * Thread: any
 */
bool balancer_open(const struct balancer_attempt *a, unsigned place);

/*
 * balancer_part(b, e):
 * The part of its share that ${e} gets now: less than 1 while it warms up. Removes ENDPOINT_WARMING
 * when its time is over.
 *
 * Thread: any
 */
double balancer_part(const struct balancer *b, struct endpoint *e);

/*
 * balancer_is_lucky(a, e):
 * Draw with balancer_part() as the chance; true also if nobody draws in ${a}.
 *
 * Thread: any
 */
bool balancer_is_lucky(const struct balancer_attempt *a, struct endpoint *e);

/*
 * balancer_random():
 * 64 bits that differ each time.
 *
 * Thread: any
 */
uint64_t balancer_random(void);

/*
 * balancer_turn(b):
 * 0, 1, 2 ... over all threads.
 *
 * Thread: any
 */
static inline uint64_t balancer_turn(struct balancer *b)
{
    return atomic_fetch_add_explicit(&b->next, 1, memory_order_relaxed);
}

/*
 * balancer_cycle_build(b, pool) / balancer_rendezvous_build(b, pool) / balancer_maglev_build(b,
 * pool): Lay out the table of a pool that is not empty.
 *
 * Thread: any
 * Owns:   the caller frees what is in ${pool}, also after an error
 * Errors: 0; -ENOMEM
 */
int balancer_cycle_build(const struct balancer *b, struct balancer_pool *pool) NODISCARD;
int balancer_rendezvous_build(const struct balancer *b, struct balancer_pool *pool) NODISCARD;
int balancer_maglev_build(const struct balancer *b, struct balancer_pool *pool) NODISCARD;

/*
 * balancer_cycle_choose(a) / balancer_random_choose(a) / balancer_least_choose(a) /
 * balancer_rendezvous_choose(a) /
 * balancer_maglev_choose(a):
 * The order of each kind; see struct balancer_kind_ops.
 *
 * Thread: any
 */
bool balancer_cycle_choose(struct balancer_attempt *a);
bool balancer_random_choose(struct balancer_attempt *a);
bool balancer_least_choose(struct balancer_attempt *a);
bool balancer_rendezvous_choose(struct balancer_attempt *a);
bool balancer_maglev_choose(struct balancer_attempt *a);

#endif
