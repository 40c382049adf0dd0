/*
 * upstream/balancer_least: the one with fewest sessions for its weight, of all; see balancer.h.
 *
 * The cost of a place is (sessions + 1) / weight: what the session would find there. Within a run, where all weights are
 * the same, costs are compared by comparing sessions. A mark stands above the count, so a word with a mark that rules out
 * is more than any count, and one comparison decides on both. That is what makes a thousand places a matter of 0.4 us.
 */
#include "upstream/balancer_internal.h"

/* How many that were offered and not taken are left out in another look. */
#define BALANCER_LEAST_ROUNDS 8

/* Costs are this divided by the weight: exact for all weights to 25, and for 50, 100, 128, 200 and 256. */
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

/* The first place in [from, to) with less than ${bound}, or ${to}. Four at a time take three quarters of the time. */
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

/* Look at [from, to) of a run. */
static void balancer_least_look(struct balancer_least *l, const struct balancer_run *run,
                                unsigned from, unsigned to)
{
    uint64_t unit = BALANCER_LEAST_UNIT / run->weight;
    /* (active + 1) * unit < cost if and only if active < bound; with no cost yet anything without a mark. */
    uint64_t bound = (l->cost + unit - 1) / unit - 1;

    if (l->place == BALANCER_NOWHERE)
        bound = ENDPOINT_COUNT_MASK;
    for (unsigned place = from; (place = balancer_least_search(l, place, to, (uint32_t)bound)) < to;
         place++) {
        uint32_t active = balancer_least_load(l, place);

        if (active >= bound || active >= l->a->b->limits[place] ||
            balancer_least_is_left_out(l, place))
            continue;
        bound = active;
        l->place = place;
        l->cost = (active + UINT64_C(1)) * unit;
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

    for (unsigned i = 0; i < a->walk->n_tried; i++)
        l.left_out[l.n_left_out++] = a->walk->tried[i];
    for (int round = 0; round < BALANCER_LEAST_ROUNDS; round++) {
        uint32_t place = balancer_least_find(&l, start);

        if (place == BALANCER_NOWHERE)
            return false;
        if (balancer_offer(a, place))
            return true;
        l.left_out[l.n_left_out++] = place;
    }
    l.visible |= ENDPOINT_WARMING; /* many of them had no luck: rather one that does not warm up */
    return balancer_least_find(&l, start) != BALANCER_NOWHERE && balancer_offer(a, l.place);
}
