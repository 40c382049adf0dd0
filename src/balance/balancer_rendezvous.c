/*
 * balance/balancer_rendezvous: weighted rendezvous hashing (highest random weight) with bounded
 * loads.
 *
 * A key gives each endpoint a pseudo-random cost, exponentially distributed with the endpoint's
 * weight as the rate; the endpoint of least cost owns the key. Shares are exactly by weight. An
 * added endpoint moves no keys between other endpoints; a removed or unfit endpoint loses only its
 * own keys, to the others by weight. Of endpoints with equal hashes and weights, as of servers with
 * one address (balancer_conf.by_address), the first fit one owns the keys of all.
 *
 * SOURCE_HASH computes the owner for each pick. MAGLEV maps the key to one of 2^19 slots and caches
 * the slot's owner at the first pick, so that picks cost the same for any group size.
 *
 * note: slots. The owner depends only on the slot and the balancer's endpoints, which never change.
 * So racing threads store the same owner, and relaxed order suffices.
 */
#include "balance/balancer_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/hash.h"

/* 1 MB of slots. With 1,000 endpoints, each has 524: shares deviate by 4.4 % (1 / sqrt(524)). */
#define BALANCER_SLOTS (UINT32_C(1) << 19)

/* With fewer endpoints, computing the owner is as fast as reading slots. */
#define BALANCER_SLOTS_FROM 64

/* Sessions that the load bound always allows at an endpoint. */
#define BALANCER_LEAST_BOUND 8

/* Maximum searches: another follows if other threads filled the owner found. */
#define BALANCER_RENDEZVOUS_ROUNDS 8

int balancer_rendezvous_build(const struct balancer *b, struct balancer_pool *pool)
{
    pool->hashes = malloc(pool->n * sizeof(*pool->hashes));
    if (!pool->hashes)
        return -ENOMEM;
    for (unsigned i = 0; i < pool->n; i++)
        pool->hashes[i] = balancer_hash_of(b, b->list[pool->from + i]);
    return 0;
}

int balancer_maglev_build(const struct balancer *b, struct balancer_pool *pool)
{
    int rc = balancer_rendezvous_build(b, pool);

    if (rc < 0 || pool->n < BALANCER_SLOTS_FROM)
        return rc;
    pool->owners = calloc(BALANCER_SLOTS, sizeof(*pool->owners));
    return pool->owners ? 0 : -ENOMEM;
}

/* Is ${place}, with one more session, within hash_balance_factor of its share by weight? */
static bool balancer_within_bound(const struct balancer_attempt *a, unsigned place)
{
    uint64_t active, all, weight;

    if (a->b->hash_balance_factor == 0 || a->weight == 0)
        return true;
    active = balancer_load(a->b, place) & ENDPOINT_COUNT_MASK;
    all = atomic_load_explicit(&a->b->group->load, memory_order_relaxed) + UINT64_C(1);
    weight = balancer_weight(a->b, place);
    /* active < ceil(x / y) if and only if active * y < x */
    return active < BALANCER_LEAST_BOUND ||
           active * 100 * a->weight < a->b->hash_balance_factor * all * weight;
}

/*
 * Mix two hashes: takes half the time of hash_mix(). The upper bits, which decide, depend on all
 * bits.
 */
static inline uint64_t balancer_draw(uint64_t key, uint64_t hash)
{
    uint64_t x = (key ^ hash) * UINT64_C(0xbf58476d1ce4e5b9);

    return (x ^ x >> 32) * UINT64_C(0x94d049bb133111eb);
}

/* Map a uniform draw to an exponential cost. Within a run, a lower draw costs less. */
static double balancer_cost(uint64_t draw, unsigned weight)
{
    return -log1p(-(double)draw * 0x1p-64) / weight;
}

/* Place with the lowest draw in ${run}, among those that ${a} may take (NULL: all). */
static uint32_t balancer_lowest(const struct balancer_pool *pool, const struct balancer_run *run,
                                uint64_t key, struct balancer_attempt *a, uint64_t *lowest)
{
    uint32_t found = BALANCER_NO_PLACE32;

    *lowest = UINT64_MAX;
    for (unsigned place = run->from; place < run->to; place++) {
        uint64_t draw = balancer_draw(key, pool->hashes[place - pool->from]);

        if (draw >= *lowest ||
            (a && !(balancer_within_bound(a, place) && balancer_takes(a, place))))
            continue;
        *lowest = draw;
        found = place;
    }
    return found;
}

/* Owner of ${key}, among the places that ${a} may take (NULL: all). */
static uint32_t balancer_owner(const struct balancer_pool *pool, uint64_t key,
                               struct balancer_attempt *a)
{
    uint32_t owner = BALANCER_NO_PLACE32;
    double least = HUGE_VAL;

    for (unsigned i = 0; i < pool->n_runs; i++) {
        const struct balancer_run *run = &pool->runs[i];
        uint64_t draw;
        uint32_t place = balancer_lowest(pool, run, key, a, &draw);
        double cost;

        /* -log(1 - x) >= x: most runs need no logarithm */
        if (place == BALANCER_NO_PLACE32 || (double)draw * 0x1p-64 / run->weight >= least)
            continue;
        cost = balancer_cost(draw, run->weight);
        if (cost < least) {
            least = cost;
            owner = place;
        }
    }
    return owner;
}

static bool balancer_rendezvous(struct balancer_attempt *a, uint64_t key)
{
    for (int round = 0; round < BALANCER_RENDEZVOUS_ROUNDS; round++) {
        uint32_t place = balancer_owner(a->pool, key, a);

        if (place == BALANCER_NO_PLACE32)
            return false;
        if (balancer_offer(a, place))
            return true;
    }
    return false;
}

bool balancer_rendezvous_choose(struct balancer_attempt *a)
{
    return balancer_rendezvous(a, hash_mix(a->pick->key));
}

static uint32_t balancer_slot_owner(const struct balancer_pool *pool, uint32_t slot, uint64_t key)
{
    _Atomic uint16_t *owner = &pool->owners[slot];
    uint32_t place = atomic_load_explicit(owner, memory_order_relaxed); /* see note: slots */

    if (place > 0)
        return place - 1;
    place = balancer_owner(pool, key, NULL);
    if (place != BALANCER_NO_PLACE32)
        atomic_store_explicit(owner, (uint16_t)(place + 1), memory_order_relaxed);
    return place;
}

bool balancer_maglev_choose(struct balancer_attempt *a)
{
    uint32_t slot = hash_reduce(hash_mix(a->pick->key), BALANCER_SLOTS);
    uint64_t key = hash_mix(slot);

    if (a->pool->owners) {
        uint32_t place = balancer_slot_owner(a->pool, slot, key);

        if (place != BALANCER_NO_PLACE32 && balancer_within_bound(a, place) &&
            balancer_offer(a, place))
            return true;
    }
    return balancer_rendezvous(a, key);
}
