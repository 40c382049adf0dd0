#include "balance/endpoint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/grace.h"

/* Compare and swap: an add that is undone at the limit would show other threads a full endpoint. */
static int endpoint_enter_bounded(struct endpoint *e, uint32_t max)
{
    uint32_t load = atomic_load_explicit(e->load, memory_order_relaxed);

    do
        if ((load & ENDPOINT_COUNT_MASK) >= max)
            return -EBUSY;
    while (!atomic_compare_exchange_weak_explicit(e->load, &load, load + 1, memory_order_acquire,
                                                  memory_order_relaxed));
    return 0;
}

/*
 * Acquire, here and in endpoint_enter_bounded(), pairs with the release in endpoint_clear_flag(): a
 * thread that enters after ENDPOINT_ABSENT was cleared sees the addresses stored before.
 */
int endpoint_enter(struct endpoint *e)
{
    uint32_t max = atomic_load_explicit(&e->max_connections, memory_order_relaxed);

    if (max == 0)
        atomic_fetch_add_explicit(e->load, 1, memory_order_acquire);
    else if (endpoint_enter_bounded(e, max) < 0)
        return -EBUSY;
    atomic_fetch_add_explicit(&e->group->load, 1, memory_order_relaxed);
    return 0;
}

void endpoint_count(struct endpoint *e)
{
    atomic_fetch_add_explicit(e->load, 1, memory_order_acquire);
    atomic_fetch_add_explicit(&e->group->load, 1, memory_order_relaxed);
}

void endpoint_leave(struct endpoint *e)
{
    uint32_t load;

    atomic_fetch_sub_explicit(&e->group->load, 1, memory_order_relaxed);
    /* Release, and the last access: without sessions ${e} may be freed (upstream/membership). */
    load = atomic_fetch_sub_explicit(e->load, 1, memory_order_release);
    MUST((load & ENDPOINT_COUNT_MASK) > 0);
}

static void endpoint_tell(struct endpoint_group *g)
{
    if (g->changed)
        g->changed(g);
}

/* A server that waits for its first check has not gone down. */
static void endpoint_note_fitness(struct endpoint *e, uint32_t before, uint32_t after)
{
    bool was_fit = (before & ENDPOINT_UNFIT) == 0, is_fit = (after & ENDPOINT_UNFIT) == 0;
    bool waits = (after & ENDPOINT_UNFIT) == ENDPOINT_DOWN &&
                 !atomic_load_explicit(&e->is_checked, memory_order_relaxed);

    if (was_fit == is_fit)
        return;
    atomic_store_explicit(&e->changed_at_ns, clock_now_ns(), memory_order_relaxed);
    if (was_fit && !waits)
        atomic_fetch_add_explicit(&e->downs, 1, memory_order_relaxed);
}

static bool endpoint_changed(struct endpoint *e, uint32_t before, uint32_t after)
{
    if (before == after)
        return false;
    endpoint_note_fitness(e, before, after);
    atomic_fetch_add_explicit(&e->group->changes, 1, memory_order_release); /* see note: flags */
    endpoint_tell(e->group);
    return true;
}

bool endpoint_set_flag(struct endpoint *e, enum endpoint_flag mark)
{
    uint32_t before = atomic_fetch_or_explicit(e->load, mark, memory_order_release);

    return endpoint_changed(e, before, before | mark);
}

bool endpoint_clear_flag(struct endpoint *e, enum endpoint_flag mark)
{
    uint32_t before = atomic_fetch_and_explicit(e->load, ~(uint32_t)mark, memory_order_release);

    return endpoint_changed(e, before, before & ~(uint32_t)mark);
}

void endpoint_put_in_use(struct endpoint *e, bool alone)
{
    struct endpoint_group *g = e->group;
    uint32_t in_use;

    lock_take(&g->lock);
    in_use = atomic_load_explicit(&g->in_use, memory_order_relaxed) + alone;
    atomic_store_explicit(&e->in_use, in_use, memory_order_relaxed);
    atomic_store_explicit(&g->in_use, in_use, memory_order_relaxed);
    atomic_store_explicit(&g->is_settled, true, memory_order_relaxed);
    lock_release(&g->lock);
}

void endpoint_set_why(struct endpoint *e, const char *why)
{
    lock_take(&e->why_lock);
    snprintf(e->why, sizeof(e->why), "%s", why);
    lock_release(&e->why_lock);
}

void endpoint_copy_why(struct endpoint *e, char *out)
{
    lock_take(&e->why_lock);
    memcpy(out, e->why, sizeof(e->why));
    lock_release(&e->why_lock);
}

void endpoint_set_said(struct endpoint *e, const char *said)
{
    lock_take(&e->why_lock);
    snprintf(e->said, sizeof(e->said), "%s", said);
    lock_release(&e->why_lock);
}

void endpoint_copy_said(struct endpoint *e, char *out)
{
    lock_take(&e->why_lock);
    memcpy(out, e->said, sizeof(e->said));
    lock_release(&e->why_lock);
}

static bool endpoint_has_address(const struct endpoint_addresses *at, const struct address *a)
{
    for (unsigned i = 0; i < at->n; i++)
        if (address_equal(&at->list[i], a))
            return true;
    return false;
}

/* Without duplicates, equal length and inclusion mean equality. */
bool endpoint_addresses_are(const struct endpoint_addresses *at, const struct address *list,
                            unsigned n)
{
    if (at->n != n)
        return false;
    for (unsigned i = 0; i < n; i++)
        if (!endpoint_has_address(at, &list[i]))
            return false;
    return true;
}

struct endpoint_addresses *endpoint_hold_addresses(const struct endpoint *e)
{
    struct endpoint_addresses *at =
        atomic_load(&e->addresses); /* sequentially consistent, for grace_begin() */

    if (at)
        ref_hold(&at->references);
    return at;
}

void endpoint_release_addresses(struct endpoint_addresses *at)
{
    if (at && ref_release(&at->references))
        free(at);
}

static void endpoint_addresses_unseen(void *cookie)
{
    endpoint_release_addresses(cookie);
}

static int endpoint_prepare_grace(struct grace **out, struct loop_group *readers,
                                  struct endpoint_addresses *at)
{
    *out = NULL;
    if (!at || !readers)
        return 0;
    return grace_create(out, readers, endpoint_addresses_unseen, at);
}

int endpoint_set_addresses(struct endpoint *e, struct loop_group *readers,
                           const struct address *list, unsigned n)
{
    struct endpoint_addresses *now = atomic_load_explicit(&e->addresses, memory_order_relaxed);
    struct endpoint_addresses *next;
    struct grace *grace;
    int rc;

    MUST(n > 0);
    if (now && endpoint_addresses_are(now, list, n))
        return endpoint_clear_flag(e, ENDPOINT_ABSENT);
    rc = endpoint_prepare_grace(&grace, readers, now);
    if (rc < 0)
        return rc;
    next = malloc(sizeof(*next) + n * sizeof(*list));
    if (!next) {
        grace_destroy(grace);
        return -ENOMEM;
    }
    ref_init(&next->references);
    next->n = n;
    memcpy(next->list, list, n * sizeof(*list));
    atomic_store(&e->addresses, next); /* sequentially consistent, for grace_begin() */
    if (!endpoint_clear_flag(e, ENDPOINT_ABSENT))
        endpoint_tell(e->group);
    if (grace)
        grace_begin(grace);
    else
        endpoint_release_addresses(now);
    return 1;
}

void endpoint_close(struct endpoint *e)
{
    endpoint_release_addresses(atomic_load(&e->addresses));
    atomic_store(&e->addresses, NULL);
    lock_close(&e->why_lock);
}
