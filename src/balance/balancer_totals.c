/* balance/balancer_totals: totals of the pools; see note: totals in balancer_internal.h. */
#include "balance/balancer_internal.h"

#define BALANCER_TOTALS_TAKEN   1u
#define BALANCER_TOTALS_PANICS  2u
#define BALANCER_TOTALS_WARM_UP 4u
#define BALANCER_TOTALS_SHARES  8u
#define BALANCER_TOTALS_FIRST   16u /* factor of `first`, which is stored above the flags */

/* Packed: 32 bits of `changes`, 24 bits of `weight` (65,535 * 256 < 2^24), 8 bits as above. */
_Static_assert(BALANCER_TOTALS_FIRST *BALANCER_LEVELS <= 256, "a pool's number fits");

static uint64_t balancer_pack(const struct balancer_totals *c)
{
    unsigned flags = BALANCER_TOTALS_TAKEN;

    flags |= c->panics ? BALANCER_TOTALS_PANICS : 0;
    flags |= c->all_warm_up ? BALANCER_TOTALS_WARM_UP : 0;
    flags |= c->shares ? BALANCER_TOTALS_SHARES : 0;
    return (uint64_t)c->changes << 32 | (uint64_t)c->weight << 8 |
           c->first * BALANCER_TOTALS_FIRST | flags;
}

static struct balancer_totals balancer_unpack(uint64_t word)
{
    return (struct balancer_totals){.changes = (uint32_t)(word >> 32),
                                    .weight = (uint32_t)word >> 8,
                                    .first = (unsigned)(word & 0xff) / BALANCER_TOTALS_FIRST,
                                    .panics = word & BALANCER_TOTALS_PANICS,
                                    .all_warm_up = word & BALANCER_TOTALS_WARM_UP,
                                    .shares = word & BALANCER_TOTALS_SHARES};
}

struct balancer_sum {
    unsigned n;
    uint32_t weight;
    unsigned n_steady; /* fit endpoints that are not warming */
};

static struct balancer_sum balancer_sum_places(const struct balancer *b, unsigned from, unsigned to,
                                               uint32_t unfit)
{
    struct balancer_sum sum = {0};

    for (unsigned place = from; place < to; place++) {
        uint32_t load = balancer_load(b, place);

        if (load & unfit)
            continue;
        sum.n++;
        sum.weight += balancer_weight(b, place);
        sum.n_steady += !(load & ENDPOINT_WARMING);
    }
    return sum;
}

static struct balancer_sum balancer_sum(const struct balancer *b, unsigned pool, uint32_t unfit)
{
    return balancer_sum_places(b, b->pools[pool].from, b->pools[pool].from + b->pools[pool].n,
                               unfit);
}

static bool balancer_enough(const struct balancer *b, unsigned n_fit, unsigned n_present)
{
    return (uint64_t)n_fit * 100 >= (uint64_t)b->panic_threshold * n_present;
}

static unsigned balancer_count_fit(const struct balancer *b, unsigned pool)
{
    unsigned n = 0;

    for (; pool < b->n_pools; pool++)
        n += balancer_sum(b, pool, ENDPOINT_UNFIT).n;
    return n;
}

/* First pool with fit endpoints; 0: none is fit. */
static unsigned balancer_first_fit_pool(const struct balancer *b)
{
    unsigned pool = 0;

    while (pool < b->n_pools && balancer_sum(b, pool, ENDPOINT_UNFIT).n == 0)
        pool++;
    return pool < b->n_pools ? pool : 0;
}

/* First pool of sessions. */
static unsigned balancer_first_pool(const struct balancer *b, uint32_t in_use)
{
    if (!b->stays)
        return balancer_first_fit_pool(b);
    return in_use < b->n ? balancer_pool_of(b, in_use) : 0;
}

/* Sum of what gets the sessions first. */
static struct balancer_sum balancer_sum_in_use(const struct balancer *b, unsigned pool,
                                               uint32_t in_use, uint32_t unfit)
{
    return b->is_single && in_use < b->n ? balancer_sum_places(b, in_use, in_use + 1, unfit)
                                         : balancer_sum(b, pool, unfit);
}

/* Apply the rules for levels and panic; see balancer.h. */
static struct balancer_totals balancer_count(const struct balancer *b, uint32_t changes)
{
    uint32_t in_use = atomic_load_explicit(&b->in_use, memory_order_relaxed);
    struct balancer_totals c = {.changes = changes, .first = balancer_first_pool(b, in_use)};
    struct balancer_sum fit = balancer_sum_in_use(b, c.first, in_use, ENDPOINT_UNFIT);
    struct balancer_sum present = balancer_sum(b, 0, ENDPOINT_ABSENT);

    if (!balancer_enough(b, fit.n, present.n)) {
        unsigned n_higher = balancer_count_fit(b, c.first + 1);

        c.panics = (c.first == 0 || fit.n + n_higher == 0) &&
                   !balancer_enough(b, fit.n + n_higher, present.n);
        c.shares = !c.panics && n_higher > 0 && !b->is_single;
    }
    if (c.panics)
        fit = balancer_sum_in_use(b, c.first, in_use, ENDPOINT_ABSENT);
    c.weight = fit.weight;
    c.all_warm_up = fit.n > 0 && fit.n_steady == 0;
    return c;
}

unsigned balancer_draw_pool(const struct balancer *b, const struct balancer_totals *c,
                            uint64_t drawn, unsigned *last)
{
    unsigned n_present = balancer_sum(b, 0, ENDPOINT_ABSENT).n, n_fit = 0, pool;
    uint32_t weights[BALANCER_LEVELS] = {0};
    uint64_t total = 0;

    for (pool = c->first; pool < b->n_pools; pool++) {
        struct balancer_sum fit = balancer_sum(b, pool, ENDPOINT_UNFIT);

        *last = pool;
        n_fit += fit.n;
        weights[pool] = fit.weight;
        total += fit.weight;
        if (balancer_enough(b, n_fit, n_present))
            break;
    }
    drawn = total > 0 ? drawn % total : 0;
    for (pool = c->first; pool < *last && drawn >= weights[pool]; pool++)
        drawn -= weights[pool];
    return pool;
}

struct balancer_totals balancer_totals(const struct balancer *b)
{
    uint64_t known = atomic_load_explicit(&b->totals, memory_order_relaxed);
    uint32_t changes = atomic_load_explicit(&b->group->changes, memory_order_acquire);

    if ((known & BALANCER_TOTALS_TAKEN) && known >> 32 == changes)
        return balancer_unpack(known);
    return balancer_count(b, changes);
}

void balancer_remember(struct balancer *b, const struct balancer_totals *c)
{
    uint64_t packed = balancer_pack(c);

    if (atomic_load_explicit(&b->totals, memory_order_relaxed) != packed)
        atomic_store_explicit(&b->totals, packed, memory_order_relaxed);
}

bool balancer_panics(const struct balancer *b)
{
    return b->n > 0 && balancer_totals(b).panics;
}
