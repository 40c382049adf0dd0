/* service/upstream: see upstream.h. */
#include "service/upstream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

static void upstream_close_servers(struct upstream *up)
{
    for (unsigned i = 0; i < up->conf->n_servers; i++) {
        struct upstream_addresses *at = atomic_load(&up->servers[i].addresses);

        while (at) {
            struct upstream_addresses *older = at->older;

            free(at);
            at = older;
        }
    }
    free(up->servers);
}

static int upstream_open_servers(struct upstream *up, const struct upstream_conf *conf)
{
    up->servers = calloc(conf->n_servers, sizeof(*up->servers));
    if (!up->servers)
        return -ENOMEM;
    for (unsigned i = 0; i < conf->n_servers; i++) {
        const struct upstream_server_conf *server = &conf->servers[i];
        int rc = 0;

        up->servers[i].conf = server;
        if (server->n_addresses > 0)
            rc = upstream_set_addresses(&up->servers[i], server->addresses, server->n_addresses);
        if (rc < 0) {
            upstream_close_servers(up);
            return rc;
        }
    }
    return 0;
}

int upstream_create(struct upstream **out, const struct upstream_conf *conf)
{
    struct upstream *up = calloc(1, sizeof(*up));
    int rc;

    if (!up)
        return -ENOMEM;
    up->conf = conf;
    rc = upstream_open_servers(up, conf);
    if (rc < 0)
        goto err_free;
    rc = upstream_init_balancer(up, conf);
    if (rc < 0)
        goto err_servers;
    *out = up;
    return 0;

err_servers:
    upstream_close_servers(up);
err_free:
    free(up);
    return rc;
}

void upstream_destroy(struct upstream *up)
{
    if (!up)
        return;
    balancer_close(&up->balancer);
    upstream_close_servers(up);
    free(up);
}

const struct upstream_addresses *upstream_addresses(const struct upstream_server *server)
{
    return atomic_load_explicit(&server->addresses, memory_order_acquire);
}

static bool upstream_has_address(const struct upstream_addresses *at, const struct address *a)
{
    for (unsigned i = 0; i < at->n; i++)
        if (address_equal(&at->list[i], a))
            return true;
    return false;
}

/* No address is twice in either list, so that as many that are all there are all there are. */
static bool upstream_is_at(const struct upstream_addresses *at, const struct address *list,
                           unsigned n)
{
    if (!at || at->n != n)
        return false;
    for (unsigned i = 0; i < n; i++)
        if (!upstream_has_address(at, &list[i]))
            return false;
    return true;
}

int upstream_set_addresses(struct upstream_server *server, const struct address *list, unsigned n)
{
    struct upstream_addresses *now = atomic_load_explicit(&server->addresses, memory_order_relaxed);
    struct upstream_addresses *next;

    MUST(n > 0);
    if (upstream_is_at(now, list, n))
        return 0;
    next = malloc(sizeof(*next) + n * sizeof(*list));
    if (!next)
        return -ENOMEM;
    next->older = now;
    next->n = n;
    memcpy(next->list, list, n * sizeof(*list));
    atomic_store_explicit(&server->addresses, next, memory_order_release); /* see note: addresses */
    return 0;
}
