/*
 * balance/balancer_random: power of two choices: draw two by weight, take the less loaded.
 *
 * Draws are from round robin's cycle, so by weight. The two are distinct, as in nginx: otherwise a
 * loaded server that is drawn twice gets the session. At equal loads, the first drawn wins.
 */
#include "balance/balancer_internal.h"
#include "base/hash.h"

/*
 * Draw a fit, untried place other than ${drawn} that slow start accepts; BALANCER_NO_PLACE32: none
 * found.
 */
static uint32_t balancer_random_draw(const struct balancer_attempt *a, uint32_t drawn)
{
    for (int draw = 0; draw < BALANCER_DRAWS; draw++) {
        uint32_t place = a->pool->table[hash_reduce(balancer_random(), a->pool->table_len)];

        if (place != drawn && balancer_open(a, place) &&
            (!(balancer_load(a->b, place) & ENDPOINT_WARMING) ||
             balancer_warmup_draw(a, a->b->list[place])))
            return place;
    }
    return BALANCER_NO_PLACE32;
}

static double balancer_random_weight(const struct balancer_attempt *a, uint32_t place)
{
    double weight = balancer_weight(a->b, place);

    return a->lottery && (balancer_load(a->b, place) & ENDPOINT_WARMING)
               ? weight * balancer_part(a->b, a->b->list[place])
               : weight;
}

static bool balancer_random_less(const struct balancer_attempt *a, uint32_t one, uint32_t other)
{
    double of_one = balancer_load(a->b, one) & ENDPOINT_COUNT_MASK;
    double of_other = balancer_load(a->b, other) & ENDPOINT_COUNT_MASK;

    return of_one * balancer_random_weight(a, other) < of_other * balancer_random_weight(a, one);
}

bool balancer_random_choose(struct balancer_attempt *a)
{
    for (int round = 0; round < BALANCER_TRIES && a->pool->n > 1; round++) {
        uint32_t one = balancer_random_draw(a, BALANCER_NO_PLACE32);
        uint32_t other =
            one == BALANCER_NO_PLACE32 ? BALANCER_NO_PLACE32 : balancer_random_draw(a, one);

        if (other == BALANCER_NO_PLACE32)
            break;
        if (balancer_random_less(a, other, one)) {
            uint32_t busier = one;

            one = other;
            other = busier;
        }
        if (balancer_offer_warm(a, one) || balancer_offer_warm(a, other))
            return true;
    }
    return balancer_least_choose(a);
}
