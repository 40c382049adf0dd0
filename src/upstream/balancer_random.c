/*
 * upstream/balancer_random: two are drawn, and the one with fewer sessions for its weight is taken; see balancer.h.
 *
 * The table is that of round robin, each endpoint in it as often as its weight says, so drawing from it is drawing by
 * weight. Two that are equally busy are not compared by weight once more: the first one drawn is taken.
 */
#include "base/hash.h"
#include "upstream/balancer_internal.h"

/* One that is open, or BALANCER_NOWHERE when BALANCER_DRAWS of ${random} found none. */
static uint32_t balancer_random_draw(const struct balancer_attempt *a)
{
    for (int draw = 0; draw < BALANCER_DRAWS; draw++) {
        uint32_t place = a->pool->table[hash_reduce(balancer_random(), a->pool->table_len)];

        if (balancer_open(a, place))
            return place;
    }
    return BALANCER_NOWHERE;
}

/* Has ${one} fewer sessions for its weight than ${other}? */
static bool balancer_random_less(const struct balancer *b, uint32_t one, uint32_t other)
{
    uint64_t of_one = balancer_load(b, one) & ENDPOINT_COUNT_MASK;
    uint64_t of_other = balancer_load(b, other) & ENDPOINT_COUNT_MASK;

    return of_one * balancer_weight(b->list[other]) < of_other * balancer_weight(b->list[one]);
}

bool balancer_random_choose(struct balancer_attempt *a)
{
    for (int round = 0; round < BALANCER_TRIES; round++) {
        uint32_t one = balancer_random_draw(a);
        uint32_t other = one == BALANCER_NOWHERE ? one : balancer_random_draw(a);

        if (other == BALANCER_NOWHERE)
            break;
        if (balancer_random_less(a->b, other, one)) {
            uint32_t busier = one;

            one = other;
            other = busier;
        }
        if (balancer_offer(a, one) || (other != one && balancer_offer(a, other)))
            return true;
    }
    return balancer_least_choose(a);
}
