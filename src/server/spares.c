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
    const struct server_conf *conf;
    struct upstream *const *upstreams;
    struct worker *const *workers;
    const struct loop_group *loops; /* NULL: no upstream keeps spares */
    struct spare_pool *pools[];     /* room for all loops that may come */
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

static int spares_prepare_upstreams(const struct spares *s, unsigned n)
{
    int rc = 0;

    for (unsigned i = 0; i < s->conf->n_upstreams && rc == 0; i++)
        rc = spare_group_prepare(s->upstreams[i], n);
    return rc;
}

static int spares_add_pool(struct spares *s, unsigned number)
{
    int rc = spare_pool_create(&s->pools[number], worker_net(s->workers[number]), number);

    for (unsigned i = 0; i < s->conf->n_upstreams && rc == 0; i++)
        if (spares_wanted(s->conf, s->upstreams[i]))
            rc = spare_pool_add(s->pools[number], s->upstreams[i]);
    if (rc == 0)
        worker_use_spares(s->workers[number], s->pools[number]);
    return rc;
}

int spares_create(struct spares **out, const struct server_conf *conf,
                  struct upstream *const *upstreams, const struct loop_group *loops,
                  struct worker *const *workers)
{
    bool any = spares_any(conf, upstreams);
    unsigned n = any ? loop_group_max(loops) : 0;
    struct spares *s = calloc(1, sizeof(*s) + n * sizeof(s->pools[0]));
    int rc = 0;

    if (!s)
        return -ENOMEM;
    s->conf = conf;
    s->upstreams = upstreams;
    s->workers = workers;
    s->loops = any ? loops : NULL;
    for (unsigned i = 0; any && i < loop_group_size(loops) && rc == 0; i++)
        rc = spares_add_pool(s, i);
    if (rc < 0) {
        spares_destroy(s);
        return rc;
    }
    *out = s;
    return 0;
}

int spares_prepare(struct spares *s, const struct loop_group_change *change)
{
    int rc;

    if (!s->loops)
        return 0;
    rc = spares_prepare_upstreams(s, change->end);
    for (unsigned i = change->first; i < change->end && rc == 0; i++)
        rc = spares_add_pool(s, i);
    if (rc < 0)
        spares_cancel(s, change);
    return rc;
}

void spares_cancel(struct spares *s, const struct loop_group_change *change)
{
    if (!s->loops)
        return;
    for (unsigned i = 0; i < s->conf->n_upstreams; i++)
        spare_group_cancel(s->upstreams[i]);
    for (unsigned i = change->first; i < change->end; i++) {
        spare_pool_destroy(s->pools[i]);
        s->pools[i] = NULL;
        worker_use_spares(s->workers[i], NULL);
    }
}

void spares_refill(const struct spares *s)
{
    for (unsigned i = 0; s->loops && i < loop_group_size(s->loops); i++)
        spare_pool_refresh(s->pools[i]);
}

void spares_destroy(struct spares *s)
{
    for (unsigned i = 0; s && s->loops && i < loop_group_size(s->loops); i++)
        spare_pool_destroy(s->pools[i]);
    free(s);
}
