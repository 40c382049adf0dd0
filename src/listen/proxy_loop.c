#include "listen/proxy_loop.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "listen/listener.h"
#include "net/netns.h"
#include "upstream/upstream.h"

struct proxy_loop_listener {
    const char **upstreams; /* of the listener (NULL: none), then of its routes */
    unsigned n_upstreams;
    const char *mirror;
    struct address *addresses;
    unsigned n;
};

/* An upstream that connects from another network namespace than that of the process. */
struct proxy_loop_abroad {
    const char *upstream;
    uint32_t netns;
};

struct proxy_loop {
    struct arena *memory; /* holds this struct and what it points at */
    struct proxy_loop_listener *listeners;
    unsigned n;
    struct proxy_loop_abroad *abroad;
    unsigned n_abroad;
};

static int proxy_loop_copy_text(struct arena *a, const char **out, const char *text)
{
    if (!text)
        return 0;
    *out = arena_text(a, text, strlen(text));
    return *out ? 0 : -ENOMEM;
}

static int proxy_loop_copy(struct arena *a, struct proxy_loop_listener *l,
                           const struct listener_conf *conf)
{
    int rc = proxy_loop_copy_text(a, &l->mirror, conf->mirror);
    unsigned n = listener_conf_targets(conf);

    l->addresses = arena_alloc(a, conf->n_addresses, sizeof(l->addresses[0]));
    l->upstreams = arena_alloc(a, n, sizeof(l->upstreams[0]));
    if (!l->addresses || !l->upstreams)
        return -ENOMEM;
    for (; rc == 0 && l->n_upstreams < n; l->n_upstreams++)
        rc = proxy_loop_copy_text(a, &l->upstreams[l->n_upstreams],
                                  listener_conf_target(conf, l->n_upstreams));
    if (rc < 0)
        return rc;
    for (; l->n < conf->n_addresses; l->n++)
        l->addresses[l->n] = conf->addresses[l->n];
    return 0;
}

static bool proxy_loop_same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* The network namespace that ${conf} connects from. */
static uint32_t proxy_loop_netns(const struct upstream_conf *conf)
{
    return netns_id(conf->connect.sock.options.netns);
}

static bool proxy_loop_same_abroad(const struct proxy_loop *p, const struct proxy_loop_conf *conf)
{
    unsigned n = 0;

    for (unsigned i = 0; i < conf->n_upstreams; i++) {
        uint32_t netns = proxy_loop_netns(&conf->upstreams[i]);

        if (netns == 0)
            continue;
        if (n == p->n_abroad || netns != p->abroad[n].netns ||
            strcmp(p->abroad[n].upstream, conf->upstreams[i].name) != 0)
            return false;
        n++;
    }
    return n == p->n_abroad;
}

static bool proxy_loop_same(const struct proxy_loop *p, const struct proxy_loop_conf *conf)
{
    const struct listener_conf *list = conf->listeners;
    bool same = p->n == conf->n_listeners && proxy_loop_same_abroad(p, conf);

    for (unsigned i = 0; same && i < p->n; i++) {
        const struct proxy_loop_listener *l = &p->listeners[i];
        const struct listener_conf *other = &list[i];

        same = proxy_loop_same_text(l->mirror, other->mirror) && l->n == other->n_addresses &&
               l->n_upstreams == listener_conf_targets(other);
        for (unsigned j = 0; same && j < l->n_upstreams; j++)
            same = proxy_loop_same_text(l->upstreams[j], listener_conf_target(other, j));
        for (unsigned j = 0; same && j < l->n; j++)
            same = address_equal(&l->addresses[j], &other->addresses[j]);
    }
    return same;
}

static int proxy_loop_copy_abroad(struct proxy_loop *p, const struct proxy_loop_conf *conf)
{
    int rc = 0;

    p->abroad = arena_alloc(p->memory, conf->n_upstreams, sizeof(p->abroad[0]));
    if (!p->abroad)
        return -ENOMEM;
    for (unsigned i = 0; rc == 0 && i < conf->n_upstreams; i++) {
        struct proxy_loop_abroad *to = &p->abroad[p->n_abroad];

        to->netns = proxy_loop_netns(&conf->upstreams[i]);
        if (to->netns == 0)
            continue;
        rc = proxy_loop_copy_text(p->memory, &to->upstream, conf->upstreams[i].name);
        p->n_abroad++;
    }
    return rc;
}

static int proxy_loop_fill(struct proxy_loop *p, const struct proxy_loop_conf *conf)
{
    int rc = proxy_loop_copy_abroad(p, conf);

    if (rc < 0)
        return rc;
    p->listeners = arena_alloc(p->memory, conf->n_listeners, sizeof(p->listeners[0]));
    if (!p->listeners)
        return -ENOMEM;
    for (; rc == 0 && p->n < conf->n_listeners; p->n++)
        rc = proxy_loop_copy(p->memory, &p->listeners[p->n], &conf->listeners[p->n]);
    return rc;
}

int proxy_loop_create(struct proxy_loop **out, const struct proxy_loop_conf *conf,
                      struct proxy_loop *before)
{
    struct proxy_loop *p;
    struct arena *memory;
    int rc;

    if (before && proxy_loop_same(before, conf)) {
        proxy_loop_hold(before);
        *out = before;
        return 0;
    }
    rc = arena_create(&memory);
    if (rc < 0)
        return rc;
    p = arena_alloc(memory, 1, sizeof(*p));
    rc = -ENOMEM;
    if (!p)
        goto err_memory;
    p->memory = memory;
    rc = proxy_loop_fill(p, conf);
    if (rc < 0)
        goto err_memory;
    *out = p;
    return 0;

err_memory:
    arena_release(memory);
    return rc;
}

void proxy_loop_hold(struct proxy_loop *p)
{
    if (p)
        (void)arena_hold(p->memory);
}

void proxy_loop_release(struct proxy_loop *p)
{
    if (p)
        arena_release(p->memory);
}

static bool proxy_loop_names(const char *name, const char *upstream)
{
    return name && strcmp(name, upstream) == 0;
}

static bool proxy_loop_leads_to(const struct proxy_loop_listener *l, const char *upstream)
{
    for (unsigned i = 0; i < l->n_upstreams; i++)
        if (proxy_loop_names(l->upstreams[i], upstream))
            return true;
    return false;
}

static bool proxy_loop_is_mirror(const struct proxy_loop *p, const char *upstream)
{
    for (unsigned i = 0; i < p->n; i++)
        if (proxy_loop_names(p->listeners[i].mirror, upstream))
            return true;
    return false;
}

static uint32_t proxy_loop_netns_of(const struct proxy_loop *p, const char *upstream)
{
    for (unsigned i = 0; i < p->n_abroad; i++)
        if (strcmp(p->abroad[i].upstream, upstream) == 0)
            return p->abroad[i].netns;
    return 0;
}

bool proxy_loop_is(const struct proxy_loop *p, const char *upstream, const struct address *a)
{
    bool mirror = proxy_loop_is_mirror(p, upstream);
    struct address there = *a;

    address_set_netns(&there, proxy_loop_netns_of(p, upstream));

    for (unsigned i = 0; i < p->n; i++) {
        const struct proxy_loop_listener *l = &p->listeners[i];

        if (!mirror && !proxy_loop_leads_to(l, upstream))
            continue;
        for (unsigned j = 0; j < l->n; j++)
            if (address_covers(&l->addresses[j], &there))
                return true;
    }
    return false;
}
