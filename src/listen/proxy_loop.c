#include "listen/proxy_loop.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "listen/listener.h"

struct proxy_loop_listener {
    const char **upstreams; /* of the listener (NULL: none), then of its routes */
    unsigned n_upstreams;
    const char *mirror;
    struct address *addresses;
    unsigned n;
};

struct proxy_loop {
    struct arena *memory; /* holds this struct and what it points at */
    struct proxy_loop_listener *listeners;
    unsigned n;
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

static bool proxy_loop_same(const struct proxy_loop *p, const struct listener_conf *list,
                            unsigned n)
{
    bool same = p->n == n;

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

static int proxy_loop_fill(struct proxy_loop *p, const struct listener_conf *list, unsigned n)
{
    int rc = 0;

    p->listeners = arena_alloc(p->memory, n, sizeof(p->listeners[0]));
    if (!p->listeners)
        return -ENOMEM;
    for (; rc == 0 && p->n < n; p->n++)
        rc = proxy_loop_copy(p->memory, &p->listeners[p->n], &list[p->n]);
    return rc;
}

int proxy_loop_create(struct proxy_loop **out, const struct listener_conf *list, unsigned n,
                      struct proxy_loop *before)
{
    struct proxy_loop *p;
    struct arena *memory;
    int rc;

    if (before && proxy_loop_same(before, list, n)) {
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
    rc = proxy_loop_fill(p, list, n);
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

bool proxy_loop_is(const struct proxy_loop *p, const char *upstream, const struct address *a)
{
    bool mirror = proxy_loop_is_mirror(p, upstream);

    for (unsigned i = 0; i < p->n; i++) {
        const struct proxy_loop_listener *l = &p->listeners[i];

        if (!mirror && !proxy_loop_leads_to(l, upstream))
            continue;
        for (unsigned j = 0; j < l->n; j++)
            if (address_covers(&l->addresses[j], a))
                return true;
    }
    return false;
}
