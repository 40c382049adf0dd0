/* upstream/spare_pool: all spares of one loop. */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "upstream/spare.h"
#include "upstream/spare_internal.h"

bool spare_pool_wants(const struct spare_pool *pool, const struct spare *sp)
{
    const struct upstream_server *server = sp->server;

    /*
     * Hosts of a service may change level: backups get none. Backup lines have spares when all
     * lines are backups.
     */
    if (!server->conf->backup && atomic_load(&server->endpoint.level) > 0)
        return false;
    return !pool->stopped && endpoint_is_used(&server->endpoint) &&
           !atomic_load(&sp->speaks_first) &&
           (endpoint_load(&server->endpoint) & ENDPOINT_UNFIT) == 0;
}

/* Drop parts of removed servers, which they hold; look at the others. */
static void spare_look_at_parts(struct spare_pool *pool)
{
    list_for_each_safe (node, &pool->parts) {
        struct spare_list *part = LIST_ENTRY(node, struct spare_list, link);

        if (endpoint_load(&part->spare->server->endpoint) & ENDPOINT_ABSENT)
            spare_list_end(part);
        else
            spare_list_refresh(part);
    }
}

/* Initializes the list at first use. */
static struct spare_list *spare_list_of(struct spare_pool *pool, struct spare *sp)
{
    struct spare_list *part = spare_part(sp, pool->number);

    if (!part->pool)
        spare_list_begin(part, pool);
    return part;
}

static void spare_begin_parts(struct spare_pool *pool, const struct upstream *up)
{
    const struct server_set *set = membership_now(&up->membership);

    for (unsigned i = 0; i < set->n; i++) {
        struct upstream_server *server = set->servers[i];

        if (server->spare && !spare_part(server->spare, pool->number)->pool &&
            (endpoint_load(&server->endpoint) & ENDPOINT_ABSENT) == 0)
            spare_list_refresh(spare_list_of(pool, server->spare));
    }
}

static void spare_run_look(struct task *t)
{
    struct spare_pool *pool = CONTAINER_OF(t, struct spare_pool, look);

    atomic_exchange(&pool->looking, false); /* see note: looking */
    spare_look_at_parts(pool);
    for (unsigned i = 0; i < pool->n_upstreams && !pool->stopped; i++)
        spare_begin_parts(pool, pool->upstreams[i]);
}

static void spare_drop_look(struct task *t)
{
    (void)t; /* the loop and its spares have ended */
}

static const struct task_type spare_look_type = {
    .name = "look at spare connections", .run = spare_run_look, .drop = spare_drop_look};

int spare_pool_create(struct spare_pool **out, struct netloop *net, unsigned number)
{
    struct spare_pool *pool = calloc(1, sizeof(*pool));

    if (!pool)
        return -ENOMEM;
    pool->net = net;
    pool->number = number;
    pool->drawn = (uint64_t)clock_now_ns();
    list_init(&pool->parts);
    pool->look.type = &spare_look_type;
    *out = pool;
    return 0;
}

int spare_pool_add(struct spare_pool *pool, struct upstream *up)
{
    struct upstream **upstreams;

    if (up->spares.n_loops == 0)
        return 0;
    MUST(pool->number < up->spares.n_loops && !up->spares.pools[pool->number]);
    upstreams = realloc(pool->upstreams, (pool->n_upstreams + 1) * sizeof(*upstreams));
    if (!upstreams)
        return -ENOMEM;
    pool->upstreams = upstreams;
    pool->upstreams[pool->n_upstreams++] = up;
    up->spares.pools[pool->number] = pool;
    return 0;
}

void spare_pool_refresh(struct spare_pool *pool)
{
    if (atomic_exchange(&pool->looking, true)) /* see note: looking */
        return;
    if (loop_submit(pool->net->loop, LOOP_TAIL, &pool->look) < 0)
        atomic_store(&pool->looking, false);
}

void spare_pool_stop(struct spare_pool *pool)
{
    MUST(loop_is_current(pool->net->loop));
    pool->stopped = true;
    while (!list_empty(&pool->parts))
        spare_list_end(LIST_FIRST(&pool->parts, struct spare_list, link));
}

void spare_pool_destroy(struct spare_pool *pool)
{
    if (!pool)
        return;
    MUST(list_empty(&pool->parts));
    free(pool->upstreams);
    free(pool);
}

int spare_take(struct spare_pool *pool, struct upstream_server *server,
               struct endpoint_addresses **at, unsigned *which)
{
    struct spare *sp = server->spare;
    int fd;

    if (!pool || !sp)
        return -1;
    MUST(loop_is_current(pool->net->loop));
    if (!spare_pool_wants(pool, sp))
        return -1;
    fd = spare_list_take(spare_list_of(pool, sp), at, which);
    if (fd < 0 && spare_over_limit(sp, spare_now(sp)))
        spare_group_refresh(&sp->up->spares); /* the session needs a place that a spare holds */
    return fd;
}
