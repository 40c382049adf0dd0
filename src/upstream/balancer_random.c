/*
 * upstream/balancer_random: two are drawn, and the one with fewer sessions for its weight is taken;
 * see balancer.h.
 *
 * The table is that of round robin, each endpoint in it as often as its weight says, so drawing
 * from it is drawing by weight. Two that are equally busy are not compared by weight once more: the
 * first one drawn is taken.
 */
#include "base/hash.h"
#include "upstream/balancer_internal.h"

/*
 * One that is open, and lucky if it warms up, or BALANCER_NOWHERE when BALANCER_DRAWS found none.
 */
static uint32_t balancer_random_draw(const struct balancer_attempt *a)
{
    for (int draw = 0; draw < BALANCER_DRAWS; draw++) {
        uint32_t place = a->pool->table[hash_reduce(balancer_random(), a->pool->table_len)];

        if (balancer_open(a, place) && (!(balancer_load(a->b, place) & ENDPOINT_WARMING) ||
                                        balancer_is_lucky(a, a->b->list[place])))
            return place;
    }
    return BALANCER_NOWHERE;
}

/* The weight of ${place} by its part of its share. */
static double balancer_random_weight(const struct balancer_attempt *a, uint32_t place)
{
    struct endpoint *e = a->b->list[place];
    double weight = balancer_weight(e);

    return a->lottery && (balancer_load(a->b, place) & ENDPOINT_WARMING)
               ? weight * balancer_part(a->b, e)
               : weight;
}

/* Has ${one} fewer sessions for its weight than ${other}? */
static bool balancer_random_less(const struct balancer_attempt *a, uint32_t one, uint32_t other)
{
    double of_one = balancer_load(a->b, one) & ENDPOINT_COUNT_MASK;
    double of_other = balancer_load(a->b, other) & ENDPOINT_COUNT_MASK;

    return of_one * balancer_random_weight(a, other) < of_other * balancer_random_weight(a, one);
}

/* Take ${place}, which has had its luck. */
static bool balancer_random_offer(struct balancer_attempt *a, uint32_t place)
{
    bool lottery = a->lottery, taken;

    a->lottery = false;
    taken = balancer_offer(a, place);
    a->lottery = lottery;
    return taken;
}

bool balancer_random_choose(struct balancer_attempt *a)
{
    for (int round = 0; round < BALANCER_TRIES; round++) {
        uint32_t one = balancer_random_draw(a);
        uint32_t other = one == BALANCER_NOWHERE ? one : balancer_random_draw(a);

        if (other == BALANCER_NOWHERE)
            break;
        if (balancer_random_less(a, other, one)) {
            uint32_t busier = one;

            one = other;
            other = busier;
        }
        if (balancer_random_offer(a, one) || (other != one && balancer_random_offer(a, other)))
            return true;
    }
    return balancer_least_choose(a);
}
