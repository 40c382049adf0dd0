#include "spare/spare_pools.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/grace.h"
#include "engine/loop_group.h"
#include "spare/spare_internal.h"

struct spare_pools {
    struct loop_group *loops;
    atomic_bool are_used; /* an upstream has, or once had, spares */
    _Atomic(struct spare_upstreams *) wanted;
    struct spare_pool *list[]; /* see note: size in engine/loop_group.h */
};

struct spare_pools_change {
    struct spare_pools *pools;
    struct spare_upstreams *wanted; /* after the commit: the replaced list */
    struct grace *grace;            /* NULL: no loops, in tests */
};

static unsigned spare_pools_size(const struct spare_pools *pools)
{
    return pools->loops ? loop_group_size(pools->loops) : 1;
}

static unsigned spare_pools_max(const struct spare_pools *pools)
{
    return pools->loops ? loop_group_max(pools->loops) : 1;
}

int spare_pools_create(struct spare_pools **out, struct loop_group *loops)
{
    unsigned max = loops ? loop_group_max(loops) : 1;
    struct spare_pools *pools = calloc(1, sizeof(*pools) + max * sizeof(pools->list[0]));
    struct spare_upstreams *none = calloc(1, sizeof(*none));

    if (!pools || !none) {
        free(pools);
        free(none);
        return -ENOMEM;
    }
    pools->loops = loops;
    atomic_init(&pools->wanted, none);
    *out = pools;
    return 0;
}

void spare_pools_destroy(struct spare_pools *pools)
{
    if (!pools)
        return;
    for (unsigned i = 0; i < spare_pools_max(pools); i++)
        spare_pool_destroy(pools->list[i]);
    free(atomic_load(&pools->wanted));
    free(pools);
}

int spare_pools_add(struct spare_pools *pools, struct netloop *net, unsigned number,
                    struct spare_pool **out)
{
    int rc = spare_pool_create(out, pools, net, number);

    if (rc == 0)
        pools->list[number] = *out;
    return rc;
}

void spare_pools_remove(struct spare_pools *pools, unsigned number)
{
    spare_pool_destroy(pools->list[number]);
    pools->list[number] = NULL;
}

const struct spare_upstreams *spare_pools_wanted(const struct spare_pools *pools)
{
    return atomic_load(&pools->wanted);
}

static void spare_pools_over(void *cookie)
{
    struct spare_pools_change *change = cookie;

    free(change->wanted);
    free(change);
}

static struct spare_upstreams *spare_pools_copy(struct upstream *const *list, unsigned n)
{
    struct spare_upstreams *wanted = calloc(1, sizeof(*wanted) + n * sizeof(wanted->list[0]));

    if (!wanted)
        return NULL;
    wanted->n = n;
    if (n > 0)
        memcpy(wanted->list, list, n * sizeof(wanted->list[0]));
    return wanted;
}

int spare_pools_prepare(struct spare_pools *pools, struct upstream *const *list, unsigned n,
                        struct spare_pools_change **out)
{
    struct spare_pools_change *change = calloc(1, sizeof(*change));
    int rc = 0;

    if (!change)
        return -ENOMEM;
    change->pools = pools;
    change->wanted = spare_pools_copy(list, n);
    if (!change->wanted)
        rc = -ENOMEM;
    else if (pools->loops)
        rc = grace_create(&change->grace, pools->loops, spare_pools_over, change);
    if (rc < 0) {
        spare_pools_cancel(change);
        return rc;
    }
    *out = change;
    return 0;
}

static void spare_pools_set_wanted(struct spare_pools *pools, const struct spare_upstreams *of,
                                   bool is_wanted)
{
    for (unsigned i = 0; i < of->n; i++) {
        struct upstream_spares *g = &of->list[i]->spares;

        atomic_store(&g->pools, pools);
        atomic_store(&g->is_wanted, is_wanted);
    }
}

void spare_pools_commit(struct spare_pools_change *change)
{
    struct spare_pools *pools = change->pools;
    struct spare_upstreams *before = atomic_load(&pools->wanted), *wanted = change->wanted;

    spare_pools_set_wanted(pools, before, false);
    spare_pools_set_wanted(pools, wanted, true);
    if (wanted->n > 0)
        atomic_store(&pools->are_used, true);
    change->wanted = before;
    atomic_store(&pools->wanted, wanted); /* sequentially consistent, for grace_begin() */
    if (change->grace)
        grace_begin(change->grace);
    else
        spare_pools_over(change);
}

void spare_pools_cancel(struct spare_pools_change *change)
{
    grace_destroy(change->grace);
    spare_pools_over(change);
}

void spare_pools_refresh(struct spare_pools *pools)
{
    unsigned n = atomic_load(&pools->are_used) ? spare_pools_size(pools) : 0;

    for (unsigned i = 0; i < n; i++)
        if (pools->list[i])
            spare_pool_refresh(pools->list[i]);
}
