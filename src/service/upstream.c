/* service/upstream: see upstream.h. */
#include "service/upstream.h"

#include <errno.h>
#include <stdlib.h>

static int upstream_init_balancer(struct upstream *up, const struct upstream_conf *conf)
{
    unsigned *weights = calloc(conf->n_servers, sizeof(*weights));
    bool *backup = calloc(conf->n_servers, sizeof(*backup));
    int rc = -ENOMEM;

    if (weights && backup) {
        for (unsigned i = 0; i < conf->n_servers; i++) {
            weights[i] = conf->servers[i].weight;
            backup[i] = conf->servers[i].backup;
        }
        rc = balancer_init(&up->balancer, weights, backup, conf->n_servers);
    }
    free(weights);
    free(backup);
    return rc;
}

int upstream_create(struct upstream **out, const struct upstream_conf *conf)
{
    struct upstream *up = calloc(1, sizeof(*up));
    int rc = -ENOMEM;

    if (!up)
        return rc;
    up->conf = conf;
    up->servers = calloc(conf->n_servers, sizeof(*up->servers));
    if (!up->servers)
        goto err_free;
    for (unsigned i = 0; i < conf->n_servers; i++)
        up->servers[i].conf = &conf->servers[i];
    rc = upstream_init_balancer(up, conf);
    if (rc < 0)
        goto err_servers;
    *out = up;
    return 0;

err_servers:
    free(up->servers);
err_free:
    free(up);
    return rc;
}

void upstream_destroy(struct upstream *up)
{
    if (!up)
        return;
    balancer_close(&up->balancer);
    free(up->servers);
    free(up);
}
