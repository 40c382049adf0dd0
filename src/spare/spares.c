#include "spare/spares.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine/loop_group.h"
#include "listen/listener.h"
#include "sessions/worker.h"
#include "spare/spare.h"
#include "spare/spare_pools.h"
#include "upstream/upstream.h"

struct spares {
    struct worker *const *workers;
    struct spare_pools *pools;
};

static bool spares_is_target(const struct listener_conf *listener, const char *upstream)
{
    for (unsigned i = 0; i < listener_conf_targets(listener); i++) {
        const char *name = listener_conf_target(listener, i);

        if (name && strcmp(name, upstream) == 0)
            return true;
    }
    return false;
}

static bool spares_wanted(const struct spares_conf *conf, const struct upstream_conf *up)
{
    if (up->spare.keep == 0)
        return false;
    for (unsigned i = 0; i < conf->n_listeners; i++)
        if (spares_is_target(&conf->listeners[i], up->name))
            return true;
    return false;
}

int spares_choose(const struct spares *s, const struct spares_conf *conf,
                  struct spare_pools_change **out)
{
    struct upstream **list = calloc((size_t)conf->n_upstreams + 1, sizeof(struct upstream *));
    unsigned n = 0;
    int rc;

    if (!list)
        return -ENOMEM;
    for (unsigned i = 0; i < conf->n_upstreams; i++)
        if (spares_wanted(conf, conf->upstreams[i].conf))
            list[n++] = conf->upstreams[i].upstream;
    rc = spare_pools_prepare(s->pools, list, n, out);
    free(list);
    return rc;
}

/* ---- threads ---- */

static int spares_prepare_upstreams(const struct spares *s, unsigned n)
{
    const struct spare_upstreams *wanted = spare_pools_wanted(s->pools);
    int rc = 0;

    for (unsigned i = 0; i < wanted->n && rc == 0; i++)
        rc = spare_add_loops(wanted->list[i], n);
    return rc;
}

static int spares_add_pools(const struct spares *s, unsigned first, unsigned end)
{
    int rc = 0;

    for (unsigned i = first; i < end && rc == 0; i++) {
        struct spare_pool *pool;

        rc = spare_pools_add(s->pools, worker_net(s->workers[i]), i, &pool);
        if (rc == 0)
            worker_use_spares(s->workers[i], spare_pool_sessions(pool));
    }
    return rc;
}

int spares_prepare(struct spares *s, const struct loop_group_change *change)
{
    int rc = spares_prepare_upstreams(s, change->end);

    if (rc == 0)
        rc = spares_add_pools(s, change->first, change->end);
    if (rc < 0)
        spares_cancel(s, change);
    return rc;
}

void spares_cancel(struct spares *s, const struct loop_group_change *change)
{
    const struct spare_upstreams *wanted = spare_pools_wanted(s->pools);

    for (unsigned i = 0; i < wanted->n; i++)
        spare_drop_loops(wanted->list[i]);
    for (unsigned i = change->first; i < change->end; i++) {
        spare_pools_remove(s->pools, i);
        worker_use_spares(s->workers[i], NULL);
    }
}

int spares_create(struct spares **out, struct loop_group *loops, struct worker *const *workers)
{
    struct spares *s = calloc(1, sizeof(*s));
    int rc;

    if (!s)
        return -ENOMEM;
    s->workers = workers;
    rc = spare_pools_create(&s->pools, loops);
    if (rc == 0)
        rc = spares_add_pools(s, 0, loop_group_size(loops));
    if (rc < 0) {
        spares_destroy(s);
        return rc;
    }
    *out = s;
    return 0;
}

void spares_refill(const struct spares *s)
{
    spare_pools_refresh(s->pools);
}

void spares_destroy(struct spares *s)
{
    if (!s)
        return;
    spare_pools_destroy(s->pools);
    free(s);
}
