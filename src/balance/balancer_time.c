/*
 * balance/balancer_time: least time: of up to eight endpoints, that of the least cost.
 *
 * The cost is time * (sessions + 1) / weight: about how long one more session would wait. A small
 * pool is searched as a whole; of a large one eight places are drawn by weight. So a pick reads a
 * bounded number of cache lines, and the workers, which see the same times, do not all choose the
 * one fastest endpoint between two of its answers.
 */
#include "balance/balancer_internal.h"
#include "base/clock.h"
#include "base/hash.h"

#define BALANCER_TIME_CHOICES 8

/* Maximum searches: another follows if another thread took the last slot. */
#define BALANCER_TIME_ROUNDS 4

/* Weights in 1024ths, so that slow start can reduce them. */
#define BALANCER_TIME_WEIGHT 1024

/* An idle endpoint in slow start has passed its draw; with less weight it would never be chosen. */
static uint64_t balancer_time_weight(const struct balancer_attempt *a, uint32_t place)
{
    uint64_t weight = (uint64_t)balancer_weight(a->b, place) * BALANCER_TIME_WEIGHT;
    uint32_t load = balancer_load(a->b, place);

    return a->lottery && (load & ENDPOINT_WARMING) && (load & ENDPOINT_COUNT_MASK) > 0
               ? (uint64_t)((double)weight * balancer_part(a->b, a->b->list[place]))
               : weight;
}

static unsigned __int128 balancer_time_cost(const struct balancer_attempt *a, uint32_t place,
                                            uint64_t ns, uint64_t other_weight)
{
    uint64_t sessions = (balancer_load(a->b, place) & ENDPOINT_COUNT_MASK) + UINT64_C(1);

    return (unsigned __int128)ns * (sessions * other_weight);
}

static bool balancer_time_less(const struct balancer_attempt *a, uint32_t one, uint32_t other,
                               int64_t now_ns)
{
    struct response_time_estimate of_one, of_other;

    of_one = response_time_estimate(&a->b->list[one]->times, now_ns);
    of_other = response_time_estimate(&a->b->list[other]->times, now_ns);
    response_time_compare(&of_one, &of_other);
    return balancer_time_cost(a, one, of_one.ns, balancer_time_weight(a, other)) <
           balancer_time_cost(a, other, of_other.ns, balancer_time_weight(a, one));
}

/* May ${place} be chosen? A full one is noted, as is one that slow start rejects. */
static bool balancer_time_may(struct balancer_attempt *a, uint32_t place)
{
    uint32_t load = balancer_load(a->b, place);

    if (!balancer_open(a, place))
        return false;
    if ((load & ENDPOINT_COUNT_MASK) >= a->b->limits[place]) {
        a->busy = true;
        return false;
    }
    if ((load & ENDPOINT_WARMING) && !balancer_warmup_draw(a, a->b->list[place])) {
        a->refused = true;
        return false;
    }
    return true;
}

/* The ${i}-th place to look at, of those from ${start} on in a small pool. */
static uint32_t balancer_time_place(const struct balancer_attempt *a, unsigned start, unsigned i)
{
    const struct balancer_pool *pool = a->pool;

    if (pool->n > BALANCER_TIME_CHOICES)
        return pool->table[hash_reduce(balancer_random(), pool->table_len)];
    return pool->from + (start + i) % pool->n;
}

static uint32_t balancer_time_find(struct balancer_attempt *a, unsigned start, int64_t now_ns)
{
    unsigned n = a->pool->n < BALANCER_TIME_CHOICES ? a->pool->n : BALANCER_TIME_CHOICES;
    uint32_t best = BALANCER_NO_PLACE32;

    for (unsigned i = 0; i < n; i++) {
        uint32_t place = balancer_time_place(a, start, i);

        if (place != best && balancer_time_may(a, place) &&
            (best == BALANCER_NO_PLACE32 || balancer_time_less(a, place, best, now_ns)))
            best = place;
    }
    return best;
}

bool balancer_time_choose(struct balancer_attempt *a)
{
    unsigned start = (unsigned)(balancer_turn(a->b) % a->pool->n);
    int64_t now_ns = clock_now_ns();

    for (int round = 0; round < BALANCER_TIME_ROUNDS; round++) {
        uint32_t place = balancer_time_find(a, start, now_ns);

        if (place == BALANCER_NO_PLACE32)
            break;
        if (balancer_offer_warm(a, place))
            return true;
    }
    return balancer_least_choose(a);
}
