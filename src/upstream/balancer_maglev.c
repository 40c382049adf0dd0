/*
 * upstream/balancer_maglev: Google's lookup table; see balancer.h.
 *
 * Every endpoint has a permutation of the table of its own and takes turns in filling the first slot of it that is free,
 * so that all get the same number of slots, give or take one, and most slots stay when the set changes: of ten that one
 * leaves a tenth of the keys move and hardly any more, of a hundred 1.2 times the hundredth. With weights, the
 * heaviest has a turn in each round and the others in as many as their weight is of its; all have one in the first.
 *
 * A key whose endpoint is not taken is hashed again, with the number of the attempt: only those keys move, and they
 * spread over all others by weight. The paper builds another table then, in which a few of the other keys move as well.
 */
#include "upstream/balancer_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

/*
 * The paper wants a hundred slots for each endpoint at least, and a prime, so that any step goes through all of them. The
 * more there are the fewer other keys move when one leaves: with 65,537 for a hundred endpoints 1.6 times the hundredth of
 * all, with 524,309 (1 MB) 1.16 times. So much memory is worth it, but no more.
 */
#define BALANCER_MAGLEV_LEAST 100
#define BALANCER_MAGLEV_SLOTS 5000
#define BALANCER_MAGLEV_TABLE 524309

static const uint32_t balancer_maglev_primes[] = {65537,   131101,  262147,  524309,
                                                  1048583, 2097169, 4194319, 6553511};

#define BALANCER_MAGLEV_FREE UINT16_MAX /* a place is less: BALANCER_MAX_ENDPOINTS */

/* An endpoint and how far it is in its permutation. */
struct balancer_maglev_filler {
    uint64_t hash;
    uint16_t place;
    unsigned weight;
    uint32_t slot; /* the next one to be tried */
    uint32_t skip;
    uint64_t turn_at; /* rounds times weight */
};

/* In the order of their hashes they fill the table, so that the order of the configuration does not matter. */
static int balancer_maglev_by_hash(const void *one, const void *other)
{
    const struct balancer_maglev_filler *x = one, *y = other;

    return (x->hash > y->hash) - (x->hash < y->hash);
}

static uint32_t balancer_maglev_size(unsigned n)
{
    uint64_t slots = (uint64_t)n * BALANCER_MAGLEV_SLOTS;
    unsigned i = 0;

    if (slots > BALANCER_MAGLEV_TABLE)
        slots = BALANCER_MAGLEV_TABLE;
    if (slots < (uint64_t)n * BALANCER_MAGLEV_LEAST)
        slots = (uint64_t)n * BALANCER_MAGLEV_LEAST;
    while (balancer_maglev_primes[i] < slots)
        i++;
    return balancer_maglev_primes[i];
}

/* The heaviest weight. */
static unsigned balancer_maglev_prepare(const struct balancer *b, const struct balancer_pool *pool,
                                        struct balancer_maglev_filler *fillers)
{
    unsigned heaviest = 0;

    for (unsigned i = 0; i < pool->n; i++) {
        const struct endpoint *e = b->list[pool->from + i];

        fillers[i] = (struct balancer_maglev_filler){
            .hash = e->hash,
            .place = (uint16_t)(pool->from + i),
            .weight = balancer_weight(e),
            .slot = hash_reduce(hash_mix(e->hash), pool->table_len),
            .skip = hash_reduce(hash_mix(~e->hash), pool->table_len - 1) + 1};
        heaviest = fillers[i].weight > heaviest ? fillers[i].weight : heaviest;
    }
    qsort(fillers, pool->n, sizeof(*fillers), balancer_maglev_by_hash);
    return heaviest;
}

static void balancer_maglev_take_slot(struct balancer_pool *pool, struct balancer_maglev_filler *f)
{
    uint32_t slot;

    do {
        slot = f->slot;
        f->slot += f->skip; /* both are below 2^23 */
        if (f->slot >= pool->table_len)
            f->slot -= pool->table_len;
    } while (pool->table[slot] != BALANCER_MAGLEV_FREE);
    pool->table[slot] = f->place;
}

static void balancer_maglev_fill(struct balancer_pool *pool, struct balancer_maglev_filler *fillers,
                                 unsigned heaviest)
{
    uint32_t filled = 0;

    for (uint64_t round = 1; filled < pool->table_len; round++)
        for (unsigned i = 0; i < pool->n && filled < pool->table_len; i++) {
            struct balancer_maglev_filler *f = &fillers[i];

            if (round * f->weight < f->turn_at)
                continue;
            f->turn_at += heaviest;
            balancer_maglev_take_slot(pool, f);
            filled++;
        }
}

int balancer_maglev_build(const struct balancer *b, struct balancer_pool *pool)
{
    struct balancer_maglev_filler *fillers = malloc(pool->n * sizeof(*fillers));

    if (!fillers)
        return -ENOMEM;
    pool->table_len = balancer_maglev_size(pool->n);
    pool->table = malloc(pool->table_len * sizeof(*pool->table));
    if (pool->table) {
        unsigned heaviest = balancer_maglev_prepare(b, pool, fillers);

        for (uint32_t i = 0; i < pool->table_len; i++)
            pool->table[i] = BALANCER_MAGLEV_FREE;
        balancer_maglev_fill(pool, fillers, heaviest);
    }
    free(fillers);
    return pool->table ? 0 : -ENOMEM;
}

bool balancer_maglev_choose(struct balancer_attempt *a)
{
    const struct balancer_pool *pool = a->pool;

    for (uint64_t attempt = 0; attempt < BALANCER_STEPS; attempt++) {
        uint64_t hash = hash_mix(a->walk->key ^ hash_mix(attempt));

        if (balancer_offer(a, pool->table[hash_reduce(hash, pool->table_len)]))
            return true;
    }
    return false;
}
