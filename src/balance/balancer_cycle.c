/*
 * balance/balancer_cycle: smooth weighted round robin from a precomputed cycle.
 *
 * nginx's rule: in each step every endpoint gains its weight as credit; the one with most credit is
 * next and pays the sum of weights. Endpoints of equal weight take turns in list order, so only the
 * next place of each run is compared.
 */
#include "balance/balancer_internal.h"

#include <errno.h>
#include <stdlib.h>

struct balancer_cycle_head {
    unsigned place;
    uint32_t weight;
    int64_t credit;
};

static unsigned balancer_cycle_divisor(const struct balancer_pool *pool)
{
    unsigned divisor = 0;

    for (unsigned i = 0; i < pool->n_runs; i++)
        for (unsigned rest = pool->runs[i].weight; rest > 0;) {
            unsigned next = divisor % rest;

            divisor = rest;
            rest = next;
        }
    return divisor;
}

static uint32_t balancer_cycle_begin(struct balancer_cycle_head *heads,
                                     const struct balancer_pool *pool)
{
    unsigned divisor = balancer_cycle_divisor(pool);
    uint32_t total = 0;

    for (unsigned i = 0; i < pool->n_runs; i++) {
        const struct balancer_run *run = &pool->runs[i];

        heads[i] =
            (struct balancer_cycle_head){.place = run->from, .weight = run->weight / divisor};
        total += heads[i].weight * (run->to - run->from);
    }
    return total;
}

/* Return the next place. At equal credit, the heaviest is next. */
static uint16_t balancer_cycle_step(struct balancer_cycle_head *heads,
                                    const struct balancer_pool *pool)
{
    unsigned best = 0;
    uint16_t place;

    for (unsigned i = 0; i < pool->n_runs; i++) {
        heads[i].credit += heads[i].weight;
        if (heads[i].credit > heads[best].credit)
            best = i;
    }
    place = (uint16_t)heads[best].place++;
    if (heads[best].place == pool->runs[best].to) { /* each place of the run had its turn: pay */
        heads[best].place = pool->runs[best].from;
        heads[best].credit -= pool->table_len;
    }
    return place;
}

int balancer_cycle_build(const struct balancer *b, struct balancer_pool *pool)
{
    struct balancer_cycle_head heads[BALANCER_MAX_WEIGHT];

    (void)b;
    pool->table_len = balancer_cycle_begin(heads, pool);
    pool->table = malloc(pool->table_len * sizeof(*pool->table));
    if (!pool->table)
        return -ENOMEM;
    for (uint32_t step = 0; step < pool->table_len; step++)
        pool->table[step] = balancer_cycle_step(heads, pool);
    return 0;
}

/*
 * The turn of a rejected endpoint goes to the others in proportion to their weights. After
 * BALANCER_DRAWS rejections take the least loaded: few endpoints seem to be fit.
 */
bool balancer_cycle_choose(struct balancer_attempt *a)
{
    const struct balancer_pool *pool = a->pool;

    for (int draw = 0; draw < BALANCER_DRAWS; draw++)
        if (balancer_offer(a, pool->table[balancer_turn(a->b) % pool->table_len]))
            return true;
    return balancer_least_choose(a);
}
