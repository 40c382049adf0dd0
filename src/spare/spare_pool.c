/* spare/spare_pool: all spare connections of one loop. */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "spare/spare.h"
#include "spare/spare_internal.h"
#include "spare/stale_retry.h"

bool spare_pool_wants(const struct spare_pool *pool, const struct spare *sp)
{
    const struct upstream_server *server = sp->server;

    /*
     * The level of an SRV host may change: above level 0 it gets no spares. For backup lines,
     * sp->is_wanted decides.
     */
    if (!server->conf->backup && atomic_load(&server->endpoint.level) > 0)
        return false;
    return !pool->stopped && atomic_load(&sp->is_wanted) && endpoint_is_used(&server->endpoint) &&
           !atomic_load(&sp->speaks_first) &&
           (endpoint_load(&server->endpoint) & ENDPOINT_UNFIT) == 0;
}

/* Arm the timer of each part: all parts in one task would take too long. */
static void spare_look_at_parts(struct spare_pool *pool)
{
    int64_t now_ns = clock_now_ns();

    list_for_each (node, &pool->parts)
        spare_pace_arm(LIST_ENTRY(node, struct spare_list, link), now_ns);
}

/* The part of ${sp} on this loop, linked to ${pool}; NULL: no part. */
static struct spare_list *spare_list_of(struct spare_pool *pool, struct spare *sp)
{
    struct spare_list *part = spare_part(sp, pool->number);

    if (part && !part->pool)
        spare_list_begin(part, pool);
    return part;
}

static void spare_begin_parts(struct spare_pool *pool, const struct upstream *up)
{
    const struct server_set *set = membership_now(&up->membership);

    for (unsigned i = 0; i < set->n; i++) {
        struct upstream_server *server = set->servers[i];
        struct spare *sp = spare_of(server);
        const struct spare_list *part = sp ? spare_part(sp, pool->number) : NULL;

        if (part && !part->pool && (endpoint_load(&server->endpoint) & ENDPOINT_ABSENT) == 0)
            spare_pace_arm(spare_list_of(pool, sp), clock_now_ns());
    }
}

static void spare_run_look(struct task *t)
{
    struct spare_pool *pool = CONTAINER_OF(t, struct spare_pool, look);
    const struct spare_upstreams *wanted;

    atomic_exchange(&pool->looking, false); /* see note: looking */
    wanted = spare_pools_wanted(pool->pools);
    spare_look_at_parts(pool);
    for (unsigned i = 0; i < wanted->n && !pool->stopped; i++)
        spare_begin_parts(pool, wanted->list[i]);
}

static const struct task_type spare_look_type = {.name = "look at spare connections",
                                                 .run = spare_run_look};

static struct stale_retry *spare_take_with_retry(struct session_spares *spares,
                                                 const struct session_spares_conf *conf,
                                                 struct session_spare *out)
{
    struct stale_retry *retry;

    if (stale_retry_create(&retry, conf) < 0)
        return NULL;
    if (spare_take(CONTAINER_OF(spares, struct spare_pool, sessions), conf->at, out))
        return retry;
    stale_retry_destroy(retry);
    return NULL;
}

static void spare_stop(struct session_spares *spares)
{
    spare_pool_stop(CONTAINER_OF(spares, struct spare_pool, sessions));
}

static const struct session_spares_ops spare_session_ops = {.take = spare_take_with_retry,
                                                            .begin = stale_retry_begin,
                                                            .lost = stale_retry_lost,
                                                            .replay = stale_retry_replay,
                                                            .destroy = stale_retry_destroy,
                                                            .stop = spare_stop};

struct session_spares *spare_pool_sessions(struct spare_pool *pool)
{
    return &pool->sessions;
}

int spare_pool_create(struct spare_pool **out, const struct spare_pools *pools, struct netloop *net,
                      unsigned number)
{
    struct spare_pool *pool = calloc(1, sizeof(*pool));

    if (!pool)
        return -ENOMEM;
    pool->sessions.ops = &spare_session_ops;
    pool->pools = pools;
    pool->net = net;
    pool->number = number;
    pool->drawn = (uint64_t)clock_now_ns();
    list_init(&pool->parts);
    pool->look.type = &spare_look_type;
    *out = pool;
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
    spare_look_at_parts(pool);
}

void spare_pool_destroy(struct spare_pool *pool)
{
    if (!pool)
        return;
    MUST(list_empty(&pool->parts));
    free(pool);
}

bool spare_take(struct spare_pool *pool, struct upstream_server *server, struct session_spare *out)
{
    struct spare *sp = spare_of(server);
    struct spare_list *part;

    if (!pool || !sp)
        return false;
    MUST(loop_is_current(pool->net->loop));
    part = spare_pool_wants(pool, sp) ? spare_list_of(pool, sp) : NULL;
    if (!part)
        return false;
    if (spare_list_take(part, out))
        return true;
    if (spare_over_limit(sp, spare_now(sp)))
        spare_refresh(&sp->up->spares); /* the session needs the connection slot of a spare */
    return false;
}
