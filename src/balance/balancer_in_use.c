/*
 * balance/balancer_in_use: chooses the endpoints in use.
 *
 * note: in use. Balancers of one group agree on the endpoints in use: they change only under the
 * group's lock, all at once with the number that those in use have, `in_use`. A thread that changed
 * a flag calls balancer_settle() afterwards; acquire on `changes` lets it see the flags that other
 * threads changed before (note: flags in balance/endpoint.h), so the last of them decides by all.
 * A pick that is faster than that thread settles itself.
 *
 * A new balancer goes on with the endpoints that were in use, at whatever level they are now. Until
 * a session has been placed, or the endpoints in use have failed, better ones replace them: checks
 * and names of the others are not known yet when a process begins.
 */
#include "balance/balancer_internal.h"

/* First fit place, ${in_use}: of those in use; or BALANCER_NO_PLACE32. */
static uint32_t balancer_find_fit(const struct balancer *b, bool in_use)
{
    for (uint32_t place = 0; place < b->n; place++)
        if (!(balancer_load(b, place) & ENDPOINT_UNFIT) &&
            (!in_use || endpoint_is_in_use(b->list[place])))
            return place;
    return BALANCER_NO_PLACE32;
}

static uint32_t balancer_find_in_use(const struct balancer *b)
{
    for (uint32_t place = 0; place < b->n; place++)
        if (endpoint_is_in_use(b->list[place]))
            return place;
    return BALANCER_NO_PLACE32;
}

/* While no endpoint is fit, those in use stay so. Under the lock. */
static uint32_t balancer_choose_in_use(const struct balancer *b)
{
    struct endpoint_group *g = b->group;
    uint32_t kept = b->stays ? balancer_find_fit(b, true) : BALANCER_NO_PLACE32, place;

    if (kept != BALANCER_NO_PLACE32 && atomic_load_explicit(&g->is_settled, memory_order_relaxed))
        return kept;
    place = balancer_find_fit(b, false);
    if (place == BALANCER_NO_PLACE32)
        return balancer_find_in_use(b);
    if (b->stays && kept == BALANCER_NO_PLACE32 &&
        atomic_load_explicit(&g->in_use, memory_order_relaxed) > 0)
        atomic_store_explicit(&g->is_settled, true, memory_order_relaxed); /* they have failed */
    return place;
}

static bool balancer_shares_use(const struct balancer *b, uint32_t one, uint32_t other)
{
    return b->is_single ? one == other : balancer_pool_of(b, one) == balancer_pool_of(b, other);
}

/*
 * Does the use move to others with the endpoint at ${in_use}? New endpoints beside those in use, or
 * in place of endpoints of the same level that are gone, are no move.
 */
static bool balancer_is_move(const struct balancer *b, uint32_t in_use)
{
    if (!b->is_single && b->pools[balancer_pool_of(b, in_use)].level == b->group->level)
        return false;
    for (uint32_t place = 0; place < b->n; place++)
        if (balancer_shares_use(b, place, in_use) && endpoint_is_in_use(b->list[place]))
            return false;
    return true;
}

/* Under the lock. */
static void balancer_put_in_use(struct balancer *b, uint32_t in_use)
{
    struct endpoint_group *g = b->group;
    uint32_t before = atomic_load_explicit(&g->in_use, memory_order_relaxed);

    if (before > 0 && balancer_is_move(b, in_use))
        atomic_fetch_add_explicit(&g->n_moves, 1, memory_order_relaxed);
    g->level = b->pools[balancer_pool_of(b, in_use)].level;
    for (uint32_t place = 0; place < b->n; place++)
        if (balancer_shares_use(b, place, in_use))
            atomic_store_explicit(&b->list[place]->in_use, before + 1, memory_order_relaxed);
    atomic_store_explicit(&g->in_use, before + 1, memory_order_relaxed);
    atomic_store_explicit(&b->in_use, in_use, memory_order_relaxed);
    b->settled_as = before + 1;
    atomic_fetch_add_explicit(&g->changes, 1, memory_order_release); /* totals are stale */
}

void balancer_settle(struct balancer *b)
{
    struct endpoint_group *g = b->group;
    uint32_t now, next;

    if (!g)
        return;
    (void)atomic_load_explicit(&g->changes, memory_order_acquire); /* see note: in use */
    lock_take(&g->lock);
    now = atomic_load_explicit(&b->in_use, memory_order_relaxed);
    next = balancer_choose_in_use(b);
    if (next != BALANCER_NO_PLACE32 &&
        (b->settled_as != atomic_load_explicit(&g->in_use, memory_order_relaxed) ||
         now == BALANCER_NO_PLACE32 || !balancer_shares_use(b, now, next)))
        balancer_put_in_use(b, next);
    lock_release(&g->lock);
}

bool balancer_stays(const struct balancer *b)
{
    return b->stays;
}

bool balancer_settle_if_due(struct balancer *b)
{
    bool is_due = balancer_find_fit(b, true) == BALANCER_NO_PLACE32 &&
                  balancer_find_fit(b, false) != BALANCER_NO_PLACE32;

    if (is_due)
        balancer_settle(b);
    return is_due;
}
