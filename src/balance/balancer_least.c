/*
 * balance/balancer_least: least connections by weight.
 *
 * The cost of a place is (sessions + 1) / weight; within a run, comparing sessions is enough. Flags
 * are bits above the session count, so one comparison checks both.
 *
 * A warming endpoint counts with a part of its weight. An idle one would get no sessions beside
 * other idle endpoints, so a draw decides whether its full weight counts.
 */
#include "balance/balancer_internal.h"

#include <math.h>

/* Maximum searches: another follows if an offer fails. */
#define BALANCER_LEAST_ROUNDS 8

/* Cost of one session at weight 1. Exact at weights to 25, and at 50, 100, 128, 200 and 256. */
#define BALANCER_LEAST_UNIT UINT64_C(428338310400) /* 2^8 3^2 5^2 7 11 13 17 19 23 < 2^39 */

struct balancer_least {
    const struct balancer_attempt *a;
    uint32_t visible; /* mask of load words: session count, and flags that exclude */
    unsigned n_left_out;
    uint32_t left_out[BALANCER_TRIES + BALANCER_LEAST_ROUNDS];
    uint32_t place; /* best so far */
    uint64_t cost;  /* cost of `place` */
};

static inline uint32_t balancer_least_load(const struct balancer_least *l, unsigned place)
{
    return balancer_load(l->a->b, place) & l->visible;
}

/* First place in [from, to) with a load below ${bound}, or ${to}. Unrolled: a quarter faster. */
static unsigned balancer_least_search(const struct balancer_least *l, unsigned from, unsigned to,
                                      uint32_t bound)
{
    for (; to - from >= 4; from += 4) {
        if (balancer_least_load(l, from) < bound)
            return from;
        if (balancer_least_load(l, from + 1) < bound)
            return from + 1;
        if (balancer_least_load(l, from + 2) < bound)
            return from + 2;
        if (balancer_least_load(l, from + 3) < bound)
            return from + 3;
    }
    while (from < to && balancer_least_load(l, from) >= bound)
        from++;
    return from;
}

static bool balancer_least_is_left_out(const struct balancer_least *l, uint32_t place)
{
    for (unsigned i = 0; i < l->n_left_out; i++)
        if (l->left_out[i] == place)
            return true;
    return false;
}

/* Cost of ${place} with ${active} sessions; ${unit} is the cost of one session in its run. */
static uint64_t balancer_least_cost(const struct balancer_least *l, unsigned place, uint32_t active,
                                    uint64_t unit)
{
    const struct balancer_attempt *a = l->a;
    struct endpoint *e = a->b->list[place];
    uint64_t cost = (active + UINT64_C(1)) * unit;

    if (!(balancer_load(a->b, place) & ENDPOINT_WARMING) || !a->lottery ||
        (active == 0 && balancer_warmup_draw(a, e)))
        return cost;
    return (uint64_t)fmin((double)cost / balancer_part(a->b, e), 0x1p63);
}

/* Session count below which a place, at cost ${unit} a session, beats the best one so far. */
static uint32_t balancer_least_bound(const struct balancer_least *l, uint64_t unit)
{
    uint64_t bound = (l->cost + unit - 1) / unit - 1; /* so that (active + 1) * unit < cost */

    return l->place == BALANCER_NO_PLACE32 || bound > ENDPOINT_COUNT_MASK ? ENDPOINT_COUNT_MASK
                                                                          : (uint32_t)bound;
}

static void balancer_least_look(struct balancer_least *l, const struct balancer_run *run,
                                unsigned from, unsigned to)
{
    uint64_t unit = BALANCER_LEAST_UNIT / run->weight;
    uint32_t bound = balancer_least_bound(l, unit);

    for (unsigned place = from; (place = balancer_least_search(l, place, to, bound)) < to;
         place++) {
        uint32_t active = balancer_least_load(l, place);
        uint64_t cost;

        if (active >= bound || active >= l->a->b->limits[place] ||
            balancer_least_is_left_out(l, place))
            continue;
        cost = balancer_least_cost(l, place, active, unit);
        if (l->place != BALANCER_NO_PLACE32 && cost >= l->cost)
            continue;
        l->place = place;
        l->cost = cost;
        bound = balancer_least_bound(l, unit);
    }
}

/*
 * Find the place of least cost, at equal cost the first from ${start} on; or BALANCER_NO_PLACE32.
 */
static uint32_t balancer_least_find(struct balancer_least *l, unsigned start)
{
    const struct balancer_pool *pool = l->a->pool;
    unsigned first = 0;

    l->place = BALANCER_NO_PLACE32;
    l->cost = 0;
    while (pool->runs[first].to <= start)
        first++;
    balancer_least_look(l, &pool->runs[first], start, pool->runs[first].to);
    for (unsigned i = first + 1; i < pool->n_runs; i++)
        balancer_least_look(l, &pool->runs[i], pool->runs[i].from, pool->runs[i].to);
    for (unsigned i = 0; i < first; i++)
        balancer_least_look(l, &pool->runs[i], pool->runs[i].from, pool->runs[i].to);
    balancer_least_look(l, &pool->runs[first], pool->runs[first].from, start);
    return l->place;
}

bool balancer_least_choose(struct balancer_attempt *a)
{
    struct balancer_least l = {.a = a, .visible = ENDPOINT_COUNT_MASK | a->unfit};
    unsigned start = a->pool->from + (unsigned)(balancer_turn(a->b) % a->pool->n);
    bool taken = false;

    for (unsigned i = 0; i < a->pick->n_tried; i++)
        l.left_out[l.n_left_out++] = a->pick->tried[i];
    for (int round = 0; round < BALANCER_LEAST_ROUNDS && !taken; round++) {
        uint32_t place = balancer_least_find(&l, start);

        if (place == BALANCER_NO_PLACE32)
            break;
        taken = balancer_offer_warm(a, place); /* the cost includes slow start */
        l.left_out[l.n_left_out++] = place;
    }
    return taken;
}
