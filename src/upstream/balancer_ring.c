/*
 * upstream/balancer_ring: consistent hashing with bounded loads; see balancer.h.
 *
 * Every endpoint has points on a ring of 2^64 hashes, and a key belongs to the first point at or behind its own hash. When
 * an endpoint is not taken, the points that follow have its keys: each key another one, so they spread over all others,
 * and no other key moves.
 *
 * With 256 points for a weight of 1 the share of an endpoint differs from the exact one by 6 % of that share in the standard
 * deviation, 1 / sqrt(256); of three endpoints by less than 5 % of all keys. Where the points would be more than 2^18 in all
 * (a sum of weights of 1,024), there are fewer of them for each weight, by a power of two: a set that grows beyond that moves
 * half of its keys once. What the others weigh does not matter otherwise: when one comes, only keys that it gets move.
 */
#include "upstream/balancer_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

#define BALANCER_RING_UNIT 256
#define BALANCER_RING_MAX  (UINT64_C(1) << 18) /* 1.5 MB */

struct balancer_ring_point {
    uint64_t hash;
    uint16_t place;
};

/* How many points ${e} has. */
static uint32_t balancer_ring_count(const struct endpoint *e, unsigned shift)
{
    uint32_t count = balancer_weight(e) * BALANCER_RING_UNIT >> shift;

    return count > 0 ? count : 1;
}

/* In any order. */
static void balancer_ring_scatter(const struct balancer *b, const struct balancer_pool *pool,
                                  struct balancer_ring_point *points, unsigned shift)
{
    for (unsigned place = pool->from; place < pool->from + pool->n; place++) {
        const struct endpoint *e = b->list[place];
        uint32_t count = balancer_ring_count(e, shift);

        for (uint32_t i = 0; i < count; i++)
            *points++ = (struct balancer_ring_point){.hash = hash_mix(e->hash ^ hash_mix(i)),
                                                     .place = (uint16_t)place};
    }
}

/* By hash; where two fall on one spot not by place, which another order in the configuration would change. */
static bool balancer_ring_before(const struct balancer *b, const struct balancer_ring_point *one,
                                 const struct balancer_ring_point *other)
{
    if (one->hash != other->hash)
        return one->hash < other->hash;
    return b->list[one->place]->hash < b->list[other->place]->hash;
}

/* The hashes are spread evenly, so ${from} is all but sorted by counting; what then is out of order is so by little. */
static void balancer_ring_sort(const struct balancer *b, struct balancer_ring_point *to,
                               const struct balancer_ring_point *from, uint32_t n, uint32_t *starts)
{
    for (uint32_t i = 0; i < n; i++)
        starts[hash_reduce(from[i].hash, n) + 1]++;
    for (uint32_t i = 0; i < n; i++)
        starts[i + 1] += starts[i];
    for (uint32_t i = 0; i < n; i++)
        to[starts[hash_reduce(from[i].hash, n)]++] = from[i];
    for (uint32_t i = 1; i < n; i++) {
        struct balancer_ring_point point = to[i];
        uint32_t at = i;

        for (; at > 0 && balancer_ring_before(b, &point, &to[at - 1]); at--)
            to[at] = to[at - 1];
        to[at] = point;
    }
}

/*
 * What is compared lies apart from what is looked at in the end, and is but half a hash: a search touches fewer lines, and
 * a point takes 6 bytes. Those that differ in the other half only stay in their order, and the first of them has the keys.
 */
static int balancer_ring_keep(struct balancer_pool *pool, const struct balancer_ring_point *sorted)
{
    pool->points = malloc(pool->table_len * sizeof(*pool->points));
    pool->table = malloc(pool->table_len * sizeof(*pool->table));
    if (!pool->points || !pool->table)
        return -ENOMEM;
    for (uint32_t i = 0; i < pool->table_len; i++) {
        pool->points[i] = (uint32_t)(sorted[i].hash >> 32);
        pool->table[i] = sorted[i].place;
    }
    return 0;
}

static unsigned balancer_ring_shift(const struct balancer_pool *pool)
{
    unsigned shift = 0;
    uint64_t weight = 0;

    for (unsigned i = 0; i < pool->n_runs; i++)
        weight += (uint64_t)pool->runs[i].weight * (pool->runs[i].to - pool->runs[i].from);
    while (weight * BALANCER_RING_UNIT >> shift > BALANCER_RING_MAX)
        shift++;
    return shift;
}

int balancer_ring_build(const struct balancer *b, struct balancer_pool *pool)
{
    unsigned shift = balancer_ring_shift(pool);
    struct balancer_ring_point *points;
    uint32_t *starts;
    uint32_t n = 0;
    int rc = -ENOMEM;

    for (unsigned i = 0; i < pool->n; i++)
        n += balancer_ring_count(b->list[pool->from + i], shift);
    points = malloc(2 * (size_t)n * sizeof(*points));
    starts = calloc((size_t)n + 1, sizeof(*starts));
    pool->table_len = n;
    if (points && starts) {
        balancer_ring_scatter(b, pool, points, shift);
        balancer_ring_sort(b, points + n, points, n, starts);
        rc = balancer_ring_keep(pool, points + n);
    }
    free(starts);
    free(points);
    return rc;
}

/* The first point at or behind the upper half of ${hash}; behind the last one comes the first. */
static uint32_t balancer_ring_find(const struct balancer_pool *pool, uint64_t hash)
{
    uint32_t key = (uint32_t)(hash >> 32);
    uint32_t low = 0, high = pool->table_len;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (pool->points[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low < pool->table_len ? low : 0;
}

/* May it have one session more: of all there will be, no more than its share by weight, and the factor on top? */
static bool balancer_ring_bears(const struct balancer_attempt *a, unsigned place)
{
    uint64_t active = balancer_load(a->b, place) & ENDPOINT_COUNT_MASK;
    uint64_t all = atomic_load_explicit(&a->b->group->load, memory_order_relaxed) + UINT64_C(1);
    uint64_t weight = balancer_weight(a->b->list[place]);

    if (a->b->hash_balance_factor == 0 || a->weight == 0)
        return true;
    /* active < ceil(x / y) if and only if active * y < x */
    return active * 100 * a->weight < a->b->hash_balance_factor * all * weight;
}

bool balancer_ring_choose(struct balancer_attempt *a)
{
    const struct balancer_pool *pool = a->pool;
    uint32_t steps = pool->table_len < BALANCER_STEPS ? pool->table_len : BALANCER_STEPS;
    uint32_t at = balancer_ring_find(pool, hash_mix(a->walk->key));

    for (; steps > 0; steps--) {
        unsigned place = pool->table[at];

        if (balancer_ring_bears(a, place) && balancer_offer(a, place))
            return true;
        at = at + 1 < pool->table_len ? at + 1 : 0;
    }
    return false;
}
