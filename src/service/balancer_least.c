/*
 * service/balancer_least: the one with fewest sessions for its weight, of all; see balancer.h.
 *
 * The cost of a place is (sessions + 1) / weight: what the session would find there. It is a float, which as an integer
 * has the same order as long as it is positive, and integers are what compilers compare several of at a time. Loads are
 * first copied with atomic reads, which compilers leave one by one, and the arithmetic is then over plain numbers, in
 * loops of a length that is known.
 */
#include "service/balancer_internal.h"

#include <string.h>

#define BALANCER_LEAST_NEVER INT32_MAX

/* How many that were offered and not taken are left out in another look. */
#define BALANCER_LEAST_ROUNDS 8

struct balancer_least {
    const struct balancer_attempt *a;
    uint32_t unfit;
    unsigned n_left_out;
    uint32_t left_out[BALANCER_LEAST_ROUNDS + BALANCER_TRIES];
    uint32_t place; /* the least until now */
    int32_t cost;   /* its */
};

static inline int32_t balancer_least_bits(float cost)
{
    int32_t bits;

    memcpy(&bits, &cost, sizeof(bits));
    return bits;
}

/* The costs of a block; of those that are unfit or full BALANCER_LEAST_NEVER. */
static void balancer_least_costs(const struct balancer_least *l, unsigned block,
                                 int32_t costs[static BALANCER_BLOCK])
{
    const struct balancer *b = l->a->b;
    int32_t unfit = (int32_t)l->unfit;
    int32_t loads[BALANCER_BLOCK];

    for (unsigned i = 0; i < BALANCER_BLOCK; i++)
        loads[i] = (int32_t)balancer_load(b, block + i);
    for (unsigned i = 0; i < BALANCER_BLOCK; i++) {
        int32_t active = loads[i] & (int32_t)ENDPOINT_COUNT_MASK;
        int32_t cost = balancer_least_bits((float)(active + 1) * b->shares[block + i]);
        int32_t out = -((loads[i] & unfit) != 0) | -(active >= b->limits[block + i]);

        costs[i] = (cost & ~out) | (BALANCER_LEAST_NEVER & out);
    }
}

/* Look at the places from ${from} to before ${to}, which are in one block. */
static void balancer_least_look(struct balancer_least *l, unsigned from, unsigned to)
{
    unsigned block = from & ~(BALANCER_BLOCK - 1u);
    int32_t costs[BALANCER_BLOCK];
    int32_t least = BALANCER_LEAST_NEVER;

    balancer_least_costs(l, block, costs);
    for (unsigned i = block; i < from; i++)
        costs[i - block] = BALANCER_LEAST_NEVER;
    for (unsigned i = to; i < block + BALANCER_BLOCK; i++)
        costs[i - block] = BALANCER_LEAST_NEVER;
    for (unsigned i = 0; i < l->n_left_out; i++)
        if (l->left_out[i] - block < BALANCER_BLOCK)
            costs[l->left_out[i] - block] = BALANCER_LEAST_NEVER;
    for (unsigned i = 0; i < BALANCER_BLOCK; i++)
        least = costs[i] < least ? costs[i] : least;
    if (least >= l->cost)
        return;
    l->cost = least;
    for (unsigned i = 0; i < BALANCER_BLOCK; i++)
        if (costs[i] == least) {
            l->place = block + i;
            return;
        }
}

static void balancer_least_look_at_all(struct balancer_least *l, unsigned from, unsigned to)
{
    for (unsigned at = from, end; at < to; at = end) {
        end = (at & ~(BALANCER_BLOCK - 1u)) + BALANCER_BLOCK;
        balancer_least_look(l, at, end < to ? end : to);
        end = end < to ? end : to;
    }
}

/* Of equals the first one at or behind ${start}; BALANCER_NOWHERE: there is none. */
static uint32_t balancer_least_find(struct balancer_least *l, unsigned start)
{
    const struct balancer_pool *pool = l->a->pool;

    l->place = BALANCER_NOWHERE;
    l->cost = BALANCER_LEAST_NEVER;
    balancer_least_look_at_all(l, start, pool->from + pool->n);
    balancer_least_look_at_all(l, pool->from, start);
    return l->place;
}

bool balancer_least_choose(struct balancer_attempt *a)
{
    struct balancer_least l = {.a = a, .unfit = a->unfit};
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
    l.unfit |= ENDPOINT_WARMING; /* many of them had no luck: rather one that does not warm up */
    balancer_least_find(&l, start);
    return l.place != BALANCER_NOWHERE && balancer_offer(a, l.place);
}
