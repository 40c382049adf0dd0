#include "upstream/route.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "upstream/upstream.h"

struct route {
    const struct route_conf *conf;
    struct upstream *upstream; /* a reference */
};

/* A name of a route. Sorted by name, then in the order of the configuration. */
struct route_entry {
    const char *name; /* empty: a route without names */
    const struct route *route;
};

struct route_table {
    struct route *routes;
    struct route_entry *entries;
    unsigned n_routes, n_entries;
};

static int route_compare(const void *a, const void *b)
{
    const struct route_entry *x = a, *y = b;
    int rc = strcmp(x->name, y->name);

    return rc != 0 ? rc : (x->route > y->route) - (x->route < y->route);
}

static void route_table_add(struct route_table *t, const struct route_conf *conf,
                            struct upstream *upstream)
{
    struct route *r = &t->routes[t->n_routes++];

    *r = (struct route){.conf = conf, .upstream = upstream_hold(upstream)};
    for (unsigned i = 0; i < conf->n_names; i++)
        t->entries[t->n_entries++] = (struct route_entry){conf->names[i], r};
    if (conf->n_names == 0)
        t->entries[t->n_entries++] = (struct route_entry){"", r};
}

int route_table_create(struct route_table **out, const struct route_conf *conf, unsigned n,
                       struct upstream *const *upstreams)
{
    struct route_table *t = calloc(1, sizeof(*t));
    size_t entries = n;

    if (!t)
        return -ENOMEM;
    for (unsigned i = 0; i < n; i++)
        entries += conf[i].n_names;
    t->routes = calloc(n, sizeof(t->routes[0]));
    t->entries = calloc(entries, sizeof(t->entries[0]));
    if (!t->routes || !t->entries) {
        route_table_destroy(t);
        return -ENOMEM;
    }
    for (unsigned i = 0; i < n; i++)
        route_table_add(t, &conf[i], upstreams[i]);
    qsort(t->entries, t->n_entries, sizeof(t->entries[0]), route_compare);
    *out = t;
    return 0;
}

void route_table_destroy(struct route_table *t)
{
    if (!t)
        return;
    for (unsigned i = 0; i < t->n_routes; i++)
        upstream_release(t->routes[i].upstream);
    free(t->routes);
    free(t->entries);
    free(t);
}

static bool route_takes_protocols(const struct route_conf *conf, struct client_hello_bytes alpn)
{
    struct client_hello_bytes name;

    while (client_hello_alpn_next(&alpn, &name))
        for (unsigned i = 0; i < conf->n_protocols; i++)
            if (strlen(conf->protocols[i]) == name.n &&
                memcmp(conf->protocols[i], name.at, name.n) == 0)
                return true;
    return conf->n_protocols == 0;
}

/* Index of the first entry with this or a greater name. */
static unsigned route_table_bisect(const struct route_table *t, const char *name)
{
    unsigned low = 0, high = t->n_entries;

    while (low < high) {
        unsigned middle = low + (high - low) / 2;

        if (strcmp(t->entries[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct upstream *route_table_find_name(const struct route_table *t, const char *name,
                                              struct client_hello_bytes alpn)
{
    for (unsigned i = route_table_bisect(t, name); i < t->n_entries; i++) {
        const struct route *r = t->entries[i].route;

        if (strcmp(t->entries[i].name, name) != 0)
            break;
        if (route_takes_protocols(r->conf, alpn))
            return r->upstream;
    }
    return NULL;
}

struct upstream *route_table_find(const struct route_table *t, const char *sni,
                                  struct client_hello_bytes alpn)
{
    const char *parent = strchr(sni, '.');
    char wildcard[SERVER_NAME_BYTES + 1] = "*";
    struct upstream *up = NULL;

    if (*sni != '\0')
        up = route_table_find_name(t, sni, alpn);
    if (!up && parent) {
        strcpy(wildcard + 1, parent);
        up = route_table_find_name(t, wildcard, alpn);
    }
    return up ? up : route_table_find_name(t, "", alpn);
}
