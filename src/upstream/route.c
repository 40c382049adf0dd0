#include "upstream/route.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "net/address.h"
#include "upstream/upstream.h"

struct route {
    const struct route_conf *conf;
    struct upstream **upstreams; /* references, as route_conf_targets(); NULL: refuses */
};

/* Bits that all values of a condition share; where they differ from a client's, none holds. */
struct route_gate {
    uint64_t bits, mask;
};

/* A name of a route. Sorted by name, then in the order of the configuration. */
struct route_entry {
    const char *name; /* empty: a route without names */
    const struct route *route;
    struct route_gate client, first;
};

struct route_table {
    struct route *routes;
    struct route_entry *entries;
    struct upstream **upstreams;                           /* of all routes */
    unsigned n_routes, n_entries, n_nameless, n_upstreams; /* the nameless entries are first */
    bool needs_hello, needs_tls, has_shares, has_names, has_after;
};

/* The last one is the surest: of several conditions, the smallest decides. */
enum route_answer { ROUTE_NO, ROUTE_MAYBE, ROUTE_YES };

/* ---- gates: most routes are left out by a few instructions, without a look at them ---- */

/* The first bytes, and how many bits of them are known. */
static struct route_gate route_gate_at(const void *at, size_t n)
{
    struct route_gate g = {0, UINT64_MAX};

    if (n < sizeof(g.bits))
        g.mask = n > 0 ? UINT64_MAX << (sizeof(g.bits) - n) * 8 : 0;
    if (n > 0)
        memcpy(&g.bits, at, n < sizeof(g.bits) ? n : sizeof(g.bits));
    g.bits = be64toh(g.bits);
    return g;
}

static bool route_gate_lets(struct route_gate g, struct route_gate client)
{
    return ((g.bits ^ client.bits) & g.mask & client.mask) == 0;
}

static void route_gate_narrow(struct route_gate *g, struct route_gate value, bool is_first)
{
    if (is_first)
        *g = value;
    else
        g->mask &= value.mask & ~(g->bits ^ value.bits);
}

static struct route_gate route_gate_of_clients(const struct cidr_list *clients)
{
    struct route_gate g = {0, 0};

    for (size_t i = 0; i < clients->n; i++) {
        const struct cidr *c = &clients->list[i];
        struct route_gate value = route_gate_at(c->host, sizeof(value.bits));

        if (c->bits < 64)
            value.mask = c->bits > 0 ? UINT64_MAX << (64 - c->bits) : 0;
        route_gate_narrow(&g, value, i == 0);
    }
    return g;
}

static struct route_gate route_gate_of_first(const struct route_conf *conf)
{
    struct route_gate g = {0, 0};

    for (unsigned i = 0; i < conf->n_first; i++)
        route_gate_narrow(&g, route_gate_at(conf->first[i].at, conf->first[i].n), i == 0);
    return g;
}

static struct route_gate route_gate_of_client(const struct address *a)
{
    size_t n;
    const void *host = address_host(a, &n);

    return route_gate_at(host, n);
}

/* ---- the table ---- */

static int route_compare(const void *a, const void *b)
{
    const struct route_entry *x = a, *y = b;
    int rc = strcmp(x->name, y->name);

    return rc != 0 ? rc : (x->route > y->route) - (x->route < y->route);
}

static void route_table_add_entry(struct route_table *t, const char *name, const struct route *r)
{
    t->entries[t->n_entries++] =
        (struct route_entry){.name = name,
                             .route = r,
                             .client = route_gate_of_clients(&r->conf->clients),
                             .first = route_gate_of_first(r->conf)};
    t->n_nameless += *name == '\0';
}

static void route_table_add(struct route_table *t, const struct route_conf *conf,
                            struct upstream *const *upstreams)
{
    struct route *r = &t->routes[t->n_routes++];

    *r = (struct route){.conf = conf, .upstreams = t->upstreams + t->n_upstreams};
    for (unsigned i = 0; i < route_conf_targets(conf); i++, t->n_upstreams++)
        if (upstreams[t->n_upstreams])
            t->upstreams[t->n_upstreams] = upstream_hold(upstreams[t->n_upstreams]);
    for (unsigned i = 0; i < conf->n_names; i++)
        route_table_add_entry(t, conf->names[i], r);
    if (conf->n_names == 0)
        route_table_add_entry(t, "", r);
    t->needs_hello |= conf->n_names > 0 || conf->n_protocols > 0 ||
                      (conf->tls & (ROUTE_TLS_1_2 | ROUTE_TLS_1_3)) != 0;
    t->needs_tls &= route_conf_needs_tls(conf);
    t->has_shares |= conf->n_shares > 0;
    t->has_names |= conf->n_names > 0;
    t->has_after |= conf->after_ns > 0;
}

int route_table_create(struct route_table **out, const struct route_conf *conf, unsigned n,
                       struct upstream *const *upstreams)
{
    struct route_table *t = calloc(1, sizeof(*t));
    size_t entries = n, targets = 0;

    if (!t)
        return -ENOMEM;
    for (unsigned i = 0; i < n; i++) {
        entries += conf[i].n_names;
        targets += route_conf_targets(&conf[i]);
    }
    t->upstreams = calloc(targets, sizeof(t->upstreams[0]));
    t->routes = calloc(n, sizeof(t->routes[0]));
    t->entries = calloc(entries, sizeof(t->entries[0]));
    t->needs_tls = true;
    if (!t->routes || !t->entries || !t->upstreams) {
        route_table_destroy(t);
        return -ENOMEM;
    }
    for (unsigned i = 0; i < n; i++)
        route_table_add(t, &conf[i], upstreams);
    qsort(t->entries, t->n_entries, sizeof(t->entries[0]), route_compare);
    *out = t;
    return 0;
}

void route_table_destroy(struct route_table *t)
{
    if (!t)
        return;
    for (unsigned i = 0; i < t->n_upstreams; i++)
        if (t->upstreams[i])
            upstream_release(t->upstreams[i]);
    free(t->upstreams);
    free(t->routes);
    free(t->entries);
    free(t);
}

bool route_table_needs_hello(const struct route_table *t)
{
    return t->needs_hello;
}

bool route_table_needs_tls(const struct route_table *t)
{
    return t->needs_tls;
}

bool route_table_has_shares(const struct route_table *t)
{
    return t->has_shares;
}

int64_t route_table_next_after_ns(const struct route_table *t, int64_t silent_ns)
{
    int64_t next_ns = 0;

    for (unsigned i = 0; t->has_after && i < t->n_routes; i++) {
        int64_t after_ns = t->routes[i].conf->after_ns;

        if (after_ns > silent_ns && (next_ns == 0 || after_ns < next_ns))
            next_ns = after_ns;
    }
    return next_ns;
}

unsigned route_tls_of(const struct client_hello *hello)
{
    switch (client_hello_highest(hello)) {
    case 0x0304: return ROUTE_TLS_1_3;
    case 0x0303: return ROUTE_TLS_1_2;
    default: return 0;
    }
}

/* ---- conditions ---- */

static bool route_takes_protocols(const struct route_conf *conf, struct client_hello_bytes alpn)
{
    struct client_hello_bytes name;

    while (client_hello_alpn_next(&alpn, &name))
        for (unsigned i = 0; i < conf->n_protocols; i++)
            if (strlen(conf->protocols[i]) == name.n &&
                memcmp(conf->protocols[i], name.at, name.n) == 0)
                return true;
    return false;
}

/* Do the bytes begin with one of `first`? */
static enum route_answer route_takes_first(const struct route_conf *conf,
                                           const struct route_client *client)
{
    enum route_answer answer = ROUTE_NO;

    for (unsigned i = 0; i < conf->n_first; i++) {
        const struct route_first *first = &conf->first[i];
        size_t n = first->n < client->first.n ? first->n : client->first.n;

        if (n > 0 && memcmp(first->at, client->first.at, n) != 0)
            continue;
        if (n == first->n)
            return ROUTE_YES;
        if (!client->is_complete)
            answer = ROUTE_MAYBE;
    }
    return answer;
}

/* The version, and the protocols. */
static enum route_answer route_takes_hello(const struct route_conf *conf,
                                           const struct route_client *client)
{
    switch (client->hello) {
    case ROUTE_HELLO_UNKNOWN: return ROUTE_MAYBE;
    case ROUTE_HELLO_NONE: return route_conf_needs_tls(conf) ? ROUTE_NO : ROUTE_YES;
    case ROUTE_HELLO_PART: return conf->tls == ROUTE_TLS_NO ? ROUTE_NO : ROUTE_MAYBE;
    case ROUTE_HELLO_READ: break;
    }
    return (conf->tls == 0 || (conf->tls & client->tls) != 0) &&
                   (conf->n_protocols == 0 || route_takes_protocols(conf, client->alpn))
               ? ROUTE_YES
               : ROUTE_NO;
}

static enum route_answer route_takes_silence(const struct route_conf *conf,
                                             const struct route_client *client)
{
    if (client->silent_ns >= conf->after_ns)
        return ROUTE_YES;
    return client->first.n > 0 || client->is_complete ? ROUTE_NO : ROUTE_MAYBE;
}

/* Do the conditions of ${conf} hold, except its names? */
static enum route_answer route_holds(const struct route_conf *conf,
                                     const struct route_client *client)
{
    enum route_answer answer = ROUTE_YES, next;

    if (conf->clients.n > 0 && !cidr_any_has(conf->clients.list, conf->clients.n, client->address))
        return ROUTE_NO;
    if (conf->after_ns > 0) /* no condition but `src` holds besides */
        return route_takes_silence(conf, client);
    if (conf->n_first > 0)
        answer = route_takes_first(conf, client);
    if (answer == ROUTE_NO || (conf->tls == 0 && conf->n_protocols == 0))
        return answer;
    next = route_takes_hello(conf, client);
    return next < answer ? next : answer;
}

/* ---- the choice ---- */

/* The hash is mixed again, so that the upstream's own choice by the same key is independent. */
static struct upstream *route_share(const struct route *r, const struct route_client *client)
{
    uint32_t at;
    unsigned i = 0;

    if (r->conf->n_shares == 0)
        return r->upstreams[0];
    at = hash_reduce(hash_mix(client->key), ROUTE_SHARE_ALL);
    while (at >= r->conf->shares[i].until)
        i++;
    return r->upstreams[i];
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

bool route_table_takes_silence(const struct route_table *t, const struct route_client *client)
{
    for (unsigned i = 0; t->has_after && client->silent_ns > 0 && i < t->n_routes; i++)
        if (t->routes[i].conf->after_ns > 0 && route_holds(t->routes[i].conf, client) == ROUTE_YES)
            return true;
    return false;
}

/*
 * The first of the entries from ${i} to before ${until} that holds. Also one that may hold, if
 * ${client} is not taken as silent.
 */
static enum route_answer route_table_find_among(const struct route_table *t, unsigned i,
                                                unsigned until, const struct route_client *client,
                                                struct route_choice *out)
{
    struct route_gate address = route_gate_of_client(client->address);
    struct route_gate first = route_gate_at(client->first.at, client->first.n);
    enum route_answer least = route_table_takes_silence(t, client) ? ROUTE_YES : ROUTE_MAYBE;

    for (; i < until; i++) {
        const struct route_entry *e = &t->entries[i];
        enum route_answer answer;

        if (!route_gate_lets(e->client, address) || !route_gate_lets(e->first, first))
            continue;
        answer = route_holds(e->route->conf, client);
        if (answer < least)
            continue;
        *out = (struct route_choice){e->route->conf->id, route_share(e->route, client)};
        return answer;
    }
    return ROUTE_NO;
}

static enum route_answer route_table_find_name(const struct route_table *t, const char *name,
                                               const struct route_client *client,
                                               struct route_choice *out)
{
    unsigned from = route_table_bisect(t, name), until = from;

    while (until < t->n_entries && strcmp(t->entries[until].name, name) == 0)
        until++;
    return route_table_find_among(t, from, until, client, out);
}

/* A name that is not known yet may choose a route with names, which comes first. */
static bool route_table_awaits_name(const struct route_table *t, const struct route_client *client)
{
    if (!t->has_names || client->hello == ROUTE_HELLO_NONE || client->hello == ROUTE_HELLO_READ)
        return false;
    for (unsigned i = 0; i < t->n_routes; i++)
        if (t->routes[i].conf->n_names > 0 && route_holds(t->routes[i].conf, client) != ROUTE_NO)
            return true;
    return false;
}

static enum route_answer route_table_find_named(const struct route_table *t,
                                                const struct route_client *client,
                                                struct route_choice *out)
{
    const char *parent = strchr(client->sni, '.');
    char wildcard[SERVER_NAME_BYTES + 1] = "*";
    enum route_answer answer = ROUTE_NO;

    if (*client->sni != '\0')
        answer = route_table_find_name(t, client->sni, client, out);
    if (answer == ROUTE_NO && parent) {
        strcpy(wildcard + 1, parent);
        answer = route_table_find_name(t, wildcard, client, out);
    }
    return answer;
}

int route_table_find(const struct route_table *t, const struct route_client *client,
                     struct route_choice *out)
{
    enum route_answer answer = ROUTE_NO;

    if (!route_table_takes_silence(t, client) && route_table_awaits_name(t, client))
        return -EAGAIN;
    if (client->hello == ROUTE_HELLO_READ)
        answer = route_table_find_named(t, client, out);
    if (answer == ROUTE_NO)
        answer = route_table_find_among(t, 0, t->n_nameless, client, out);
    if (answer == ROUTE_MAYBE)
        return -EAGAIN;
    if (answer == ROUTE_NO)
        *out = (struct route_choice){NULL, NULL};
    return 0;
}
