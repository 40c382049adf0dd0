/* server/spares: see spares.h. */
#include "server/spares.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "server/server.h"
#include "server/worker.h"
#include "upstream/spare.h"
#include "upstream/upstream.h"

struct spares {
    unsigned n;                 /* 0: nobody keeps any */
    struct spare_pool *pools[]; /* one for each worker */
};

static bool spares_wanted(const struct spares_conf *conf, const struct upstream *up)
{
    if (up->conf->spare.keep == 0)
        return false;
    for (unsigned i = 0; i < conf->server->n_listeners; i++) {
        const char *name = conf->server->listeners[i].upstream;

        if (name && strcmp(name, up->conf->name) == 0)
            return true;
    }
    return false;
}

static bool spares_any(const struct spares_conf *conf)
{
    bool any = false;

    for (unsigned i = 0; i < conf->server->n_upstreams; i++)
        any |= spares_wanted(conf, conf->upstreams[i]);
    return any;
}

static int spares_create_pool(struct spares *s, const struct spares_conf *conf, unsigned number)
{
    int rc = spare_pool_create(&s->pools[number], worker_net(conf->workers[number]), number);

    for (unsigned i = 0; i < conf->server->n_upstreams && rc == 0; i++)
        if (spares_wanted(conf, conf->upstreams[i]))
            rc = spare_pool_add(s->pools[number], conf->upstreams[i]);
    if (rc == 0)
        worker_use_spares(conf->workers[number], s->pools[number]);
    return rc;
}

int spares_create(struct spares **out, const struct spares_conf *conf)
{
    unsigned n = spares_any(conf) ? conf->n_workers : 0;
    struct spares *s = calloc(1, sizeof(*s) + n * sizeof(s->pools[0]));
    int rc = 0;

    if (!s)
        return -ENOMEM;
    s->n = n;
    for (unsigned i = 0; i < n && rc == 0; i++)
        rc = spares_create_pool(s, conf, i);
    if (rc < 0) {
        spares_destroy(s);
        return rc;
    }
    *out = s;
    return 0;
}

void spares_look(const struct spares *s)
{
    for (unsigned i = 0; i < s->n; i++)
        spare_pool_look(s->pools[i]);
}

void spares_destroy(struct spares *s)
{
    for (unsigned i = 0; s && i < s->n; i++)
        spare_pool_destroy(s->pools[i]);
    free(s);
}
