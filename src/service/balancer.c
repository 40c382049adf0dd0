/* service/balancer: see balancer.h. */
#include "service/balancer.h"

#include <errno.h>
#include <stdlib.h>

#define BALANCER_MAX_WEIGHT  256
#define BALANCER_MAX_SERVERS UINT16_MAX

static unsigned balancer_gcd(unsigned a, unsigned b)
{
    while (b > 0) {
        unsigned rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* Primaries first, backups behind them, each in the order of the configuration. */
static void balancer_order(struct balancer *b, const bool *backup, unsigned n)
{
    uint16_t at = 0;

    for (unsigned i = 0; i < n; i++)
        if (!backup[i])
            b->order[at++] = (uint16_t)i;
    b->n_primary = at;
    for (unsigned i = 0; i < n; i++)
        if (backup[i])
            b->order[at++] = (uint16_t)i;
    if (b->n_primary == 0)
        b->n_primary = at;
}

/*
 * Each step every server gains its weight, the one that has most is picked and pays the total. The cycle holds
 * places in `order`, which is where a walk goes on from.
 */
static int balancer_cycle(struct balancer *b, const unsigned *weights)
{
    int64_t *credit = calloc(b->n_primary, sizeof(*credit));
    unsigned total = 0, divisor = 0;

    if (!credit)
        return -ENOMEM;
    for (unsigned i = 0; i < b->n_primary; i++) {
        total += weights[b->order[i]];
        divisor = balancer_gcd(weights[b->order[i]], divisor);
    }
    b->cycle_len = total / divisor;
    b->cycle = calloc(b->cycle_len, sizeof(*b->cycle));
    for (uint32_t step = 0; b->cycle && step < b->cycle_len; step++) {
        uint16_t best = 0;

        for (uint16_t i = 0; i < b->n_primary; i++) {
            credit[i] += weights[b->order[i]] / divisor;
            if (credit[i] > credit[best])
                best = i;
        }
        credit[best] -= b->cycle_len;
        b->cycle[step] = best;
    }
    free(credit);
    return b->cycle ? 0 : -ENOMEM;
}

int balancer_init(struct balancer *b, const unsigned *weights, const bool *backup, unsigned n)
{
    *b = (struct balancer){.n_servers = (uint16_t)n};
    if (n == 0 || n > BALANCER_MAX_SERVERS)
        return -EINVAL;
    for (unsigned i = 0; i < n; i++)
        if (weights[i] == 0 || weights[i] > BALANCER_MAX_WEIGHT)
            return -EINVAL;
    b->order = calloc(n, sizeof(*b->order));
    if (!b->order)
        return -ENOMEM;
    balancer_order(b, backup, n);
    if (balancer_cycle(b, weights) < 0) {
        balancer_close(b);
        return -ENOMEM;
    }
    return 0;
}

void balancer_close(struct balancer *b)
{
    free(b->cycle);
    free(b->order);
    b->cycle = NULL;
    b->order = NULL;
}

unsigned balancer_first(struct balancer *b, struct balancer_walk *walk)
{
    /* Relaxed: only the sequence of values matters. */
    uint64_t tick = atomic_fetch_add_explicit(&b->next, 1, memory_order_relaxed);

    walk->first = b->cycle[tick % b->cycle_len];
    walk->tried = 1;
    return b->order[walk->first];
}

int balancer_next(const struct balancer *b, struct balancer_walk *walk, unsigned *out)
{
    unsigned at = walk->first + walk->tried;

    if (walk->tried >= b->n_servers)
        return -ENOENT;
    if (walk->tried < b->n_primary)
        *out = b->order[at < b->n_primary ? at : at - b->n_primary];
    else
        *out = b->order[walk->tried];
    walk->tried++;
    return 0;
}
