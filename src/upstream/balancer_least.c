/*
 * upstream/balancer_least: the one with fewest sessions for its weight, of all; see balancer.h.
 *
 * The cost of a place is (sessions + 1) / weight: what the session would find there. Within a run,
 * where all weights are the same, costs are compared by comparing sessions. A mark stands above the
 * count, so a word with a mark that rules out is more than any count, and one comparison decides on
 * both. That is what makes a thousand places a matter of 0.4 us.
 *
 * An endpoint that warms up has a part of its weight, so that it gets that part of the sessions and
 * no more. Without a session it would get none beside others without one, so then it is drawn
 * whether it counts as one with all its weight.
 */
#include "upstream/balancer_internal.h"

#include <math.h>

/* How many that were offered and not taken are left out in another look. */
#define BALANCER_LEAST_ROUNDS 8

/*
 * Costs are this divided by the weight: exact for all weights to 25, and for 50, 100, 128, 200 and
 * 256.
 */
#define BALANCER_LEAST_UNIT UINT64_C(428338310400) /* 2^8 3^2 5^2 7 11 13 17 19 23 < 2^39 */

struct balancer_least {
    const struct balancer_attempt *a;
    uint32_t visible; /* the count, and the marks that rule out */
    unsigned n_left_out;
    uint32_t left_out[BALANCER_TRIES + BALANCER_LEAST_ROUNDS];
    uint32_t place; /* the least until now */
    uint64_t cost;  /* its */
};

static inline uint32_t balancer_least_load(const struct balancer_least *l, unsigned place)
{
    return balancer_load(l->a->b, place) & l->visible;
}

/*
 * The first place in [from, to) with less than ${bound}, or ${to}. Four at a time take three
 * quarters of the time.
 */
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

/* What a session would find at ${place}; ${unit} is the cost of a session in its run. */
static uint64_t balancer_least_cost(const struct balancer_least *l, unsigned place, uint32_t active,
                                    uint64_t unit)
{
    const struct balancer_attempt *a = l->a;
    struct endpoint *e = a->b->list[place];
    uint64_t cost = (active + UINT64_C(1)) * unit;

    if (!(balancer_load(a->b, place) & ENDPOINT_WARMING) || !a->lottery ||
        (active == 0 && balancer_is_lucky(a, e)))
        return cost;
    return (uint64_t)fmin((double)cost / balancer_part(a->b, e), 0x1p63);
}

/*
 * Fewer sessions than that, in a run whose sessions cost ${unit}, cost less than the least until
 * now.
 */
static uint32_t balancer_least_bound(const struct balancer_least *l, uint64_t unit)
{
    uint64_t bound = (l->cost + unit - 1) / unit - 1; /* (active + 1) * unit < cost */

    return l->place == BALANCER_NOWHERE || bound > ENDPOINT_COUNT_MASK ? ENDPOINT_COUNT_MASK
                                                                       : (uint32_t)bound;
}

/* Look at [from, to) of a run. */
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
        if (l->place != BALANCER_NOWHERE && cost >= l->cost)
            continue;
        l->place = place;
        l->cost = cost;
        bound = balancer_least_bound(l, unit);
    }
}

/* Of equals the first one at or behind ${start}; BALANCER_NOWHERE: there is none. */
static uint32_t balancer_least_find(struct balancer_least *l, unsigned start)
{
    const struct balancer_pool *pool = l->a->pool;
    unsigned first = 0;

    l->place = BALANCER_NOWHERE;
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
    bool lottery = a->lottery, taken = false;

    for (unsigned i = 0; i < a->walk->n_tried; i++)
        l.left_out[l.n_left_out++] = a->walk->tried[i];
    for (int round = 0; round < BALANCER_LEAST_ROUNDS && !taken; round++) {
        uint32_t place = balancer_least_find(&l, start);

        if (place == BALANCER_NOWHERE)
            break;
        a->lottery = false; /* its cost has decided */
        taken = balancer_offer(a, place);
        a->lottery = lottery;
        l.left_out[l.n_left_out++] = place;
    }
    return taken;
}
