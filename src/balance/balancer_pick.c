/* balance/balancer_pick: pick an endpoint, level by level. */
#include <errno.h>

#include "balance/balancer_internal.h"
#include "base/hash.h"

/* Settles of a pick while flags change. */
#define BALANCER_SETTLES 4

void balancer_begin(struct balancer_pick_state *pick, uint64_t key)
{
    pick->key = key;
    pick->n_tried = 0;
    pick->generation = 0;
}

/* Forget places tried with another balancer: their numbers mean nothing in ${b}. */
static void balancer_recognize(const struct balancer *b, struct balancer_pick_state *pick)
{
    for (unsigned i = 0; pick->generation != b->generation && i < pick->n_tried; i++)
        pick->tried[i] = BALANCER_NO_PLACE16;
    pick->generation = b->generation;
}

static int balancer_pick_in(struct balancer *b, struct balancer_pick_state *pick,
                            const struct balancer_totals *c, unsigned pool, struct endpoint **out)
{
    struct balancer_attempt a = {.b = b,
                                 .pool = &b->pools[pool],
                                 .pick = pick,
                                 .unfit = c->panics ? ENDPOINT_ABSENT : ENDPOINT_UNFIT,
                                 .weight = pool == c->first ? c->weight : 0,
                                 .keyed = b->ops->keyed,
                                 .lottery = !c->all_warm_up};

    if (balancer_try(&a)) {
        *out = a.taken;
        return 0;
    }
    return a.busy ? -EBUSY : -ENOENT;
}

/*
 * Pick from the pools that share sessions: first from a drawn pool, then from the others. Sets
 * ${last} to the last such pool.
 */
static int balancer_pick_shared(struct balancer *b, struct balancer_pick_state *pick,
                                const struct balancer_totals *c, unsigned *last,
                                struct endpoint **out)
{
    uint64_t random = b->ops->keyed ? hash_mix(~pick->key) : balancer_random();
    unsigned drawn = balancer_draw_pool(b, c, random, last);
    int rc = balancer_pick_in(b, pick, c, drawn, out);
    bool busy = rc == -EBUSY;

    for (unsigned i = c->first; i <= *last && rc < 0; i++) {
        rc = i == drawn ? rc : balancer_pick_in(b, pick, c, i, out);
        busy |= rc == -EBUSY;
    }
    return rc == 0 ? 0 : busy ? -EBUSY : -ENOENT;
}

static int balancer_pick_fit(struct balancer *b, struct balancer_pick_state *pick,
                             const struct balancer_totals *c, struct endpoint **out)
{
    unsigned i = c->first;
    int rc = -ENOENT;
    bool busy = false;

    if (c->shares) {
        rc = balancer_pick_shared(b, pick, c, &i, out);
        busy = rc == -EBUSY;
        i++;
    }
    for (; c->weight > 0 && i < b->n_pools && rc < 0 && (!busy || b->spills); i++) {
        rc = balancer_pick_in(b, pick, c, i, out);
        busy |= rc == -EBUSY;
    }
    return rc < 0 && busy ? -EBUSY : rc;
}

/* Offer the one place in use. */
static int balancer_pick_single(struct balancer *b, struct balancer_pick_state *pick,
                                const struct balancer_totals *c, uint32_t place,
                                struct endpoint **out)
{
    struct balancer_attempt a = {.b = b,
                                 .pool = &b->pools[c->first],
                                 .pick = pick,
                                 .unfit = c->panics ? ENDPOINT_ABSENT : ENDPOINT_UNFIT};

    if (!balancer_offer(&a, place))
        return a.busy ? -EBUSY : -ENOENT;
    *out = a.taken;
    return 0;
}

/* With `stays`: pick from those in use; if these are full and `spills` is set, from all. */
static int balancer_pick_in_use(struct balancer *b, struct balancer_pick_state *pick,
                                const struct balancer_totals *c, struct endpoint **out)
{
    uint32_t place = atomic_load_explicit(&b->in_use, memory_order_relaxed);
    unsigned last;
    int rc;

    if (c->weight == 0)
        return -ENOENT;
    if (c->shares)
        rc = balancer_pick_shared(b, pick, c, &last, out);
    else if (b->is_single && place < b->n)
        rc = balancer_pick_single(b, pick, c, place, out);
    else
        rc = balancer_pick_in(b, pick, c, c->first, out);
    if (rc == 0 && !atomic_load_explicit(&b->group->is_settled, memory_order_relaxed))
        atomic_store_explicit(&b->group->is_settled, true, memory_order_relaxed);
    if (rc != -EBUSY || !b->spills)
        return rc;
    for (unsigned i = 0; i < b->n_pools && rc < 0; i++)
        rc = balancer_pick_in(b, pick, c, i, out);
    return rc < 0 ? -EBUSY : 0;
}

/* Only endpoints in use, if one of them is fit and they stay so. */
static int balancer_pick_ejected(struct balancer *b, struct balancer_pick_state *pick,
                                 const struct balancer_totals *c, struct endpoint **out)
{
    bool is_bound = b->stays && c->weight > 0, busy = false;
    unsigned from = is_bound ? c->first : 0, to = is_bound ? from + 1 : b->n_pools;

    if (is_bound && b->is_single)
        return -ENOENT;
    for (unsigned i = from; i < to; i++) {
        struct balancer_attempt a = {.b = b,
                                     .pool = &b->pools[i],
                                     .pick = pick,
                                     .unfit = ENDPOINT_UNFIT & ~(uint32_t)ENDPOINT_EJECTED,
                                     .keyed = b->ops->keyed};

        if (balancer_try(&a)) {
            *out = a.taken;
            return 0;
        }
        busy |= a.busy;
    }
    return busy ? -EBUSY : -ENOENT;
}

int balancer_pick(struct balancer *b, struct balancer_pick_state *pick, struct endpoint **out)
{
    struct balancer_totals c;
    int rc;

    balancer_recognize(b, pick);
    if (b->n == 0 || pick->n_tried >= BALANCER_TRIES)
        return -ENOENT;
    for (int i = 0; i < BALANCER_SETTLES; i++) {
        c = balancer_totals(b);
        balancer_remember(b, &c);
        rc =
            b->stays ? balancer_pick_in_use(b, pick, &c, out) : balancer_pick_fit(b, pick, &c, out);
        if (rc != -ENOENT || !b->stays || !balancer_settle_if_due(b))
            break;
    }
    return rc == -ENOENT ? balancer_pick_ejected(b, pick, &c, out) : rc;
}
