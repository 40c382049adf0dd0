/* server/spares: see spares.h. */
#include "server/spares.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine/loop_group.h"
#include "server/server.h"
#include "server/worker.h"
#include "upstream/spare.h"
#include "upstream/upstream.h"

struct spares {
    unsigned n; /* 0: no upstream keeps spares */
    struct spare_pool *pools[];
};

static bool spares_wanted(const struct server_conf *conf, const struct upstream *up)
{
    if (up->conf->spare.keep == 0)
        return false;
    for (unsigned i = 0; i < conf->n_listeners; i++) {
        const char *name = conf->listeners[i].upstream;

        if (name && strcmp(name, up->conf->name) == 0)
            return true;
    }
    return false;
}

static bool spares_any(const struct server_conf *conf, struct upstream *const *upstreams)
{
    bool any = false;

    for (unsigned i = 0; i < conf->n_upstreams; i++)
        any |= spares_wanted(conf, upstreams[i]);
    return any;
}

static int spares_add_all(struct spare_pool *pool, const struct server_conf *conf,
                          struct upstream *const *upstreams)
{
    int rc = 0;

    for (unsigned i = 0; i < conf->n_upstreams && rc == 0; i++)
        if (spares_wanted(conf, upstreams[i]))
            rc = spare_pool_add(pool, upstreams[i]);
    return rc;
}

int spares_create(struct spares **out, const struct server_conf *conf,
                  struct upstream *const *upstreams, const struct loop_group *loops,
                  struct worker *const *workers)
{
    unsigned n = spares_any(conf, upstreams) ? loop_group_size(loops) : 0;
    struct spares *s = calloc(1, sizeof(*s) + n * sizeof(s->pools[0]));
    int rc = 0;

    if (!s)
        return -ENOMEM;
    s->n = n;
    for (unsigned i = 0; i < n && rc == 0; i++) {
        rc = spare_pool_create(&s->pools[i], worker_net(workers[i]), i);
        if (rc == 0)
            rc = spares_add_all(s->pools[i], conf, upstreams);
        if (rc == 0)
            worker_use_spares(workers[i], s->pools[i]);
    }
    if (rc < 0) {
        spares_destroy(s);
        return rc;
    }
    *out = s;
    return 0;
}

void spares_refill(const struct spares *s)
{
    for (unsigned i = 0; i < s->n; i++)
        spare_pool_refresh(s->pools[i]);
}

void spares_destroy(struct spares *s)
{
    for (unsigned i = 0; s && i < s->n; i++)
        spare_pool_destroy(s->pools[i]);
    free(s);
}
