/*
 * upstream/route: choose an upstream by the server name and protocols (ALPN) of a TLS client.
 *
 * Routes with the exact name come first, then wildcards, then routes without a name. Within each of
 * these groups, the first route in the configuration whose protocols match is taken.
 */
#ifndef UPSTREAM_ROUTE_H
#define UPSTREAM_ROUTE_H

#include "base/must.h"
#include "tls/client_hello.h"

struct route_table;
struct upstream;

/* A route matches if one of its names and one of its protocols match. */
struct route_conf {
    const char *id;
    const char **names; /* see server_name_read_pattern() */
    unsigned n_names;   /* 0: clients with any name or none match */
    const char **protocols;
    unsigned n_protocols; /* 0: clients with any protocols or none match */
    const char *upstream;
};

/*
 * route_table_create(out, conf, n, upstreams):
 * Compile ${n} routes; ${conf}[i] leads to ${upstreams}[i].
 *
 * Owns:   ${out} references the upstreams; ${conf} must outlive ${out}
 * Errors: 0; -ENOMEM
 */
int route_table_create(struct route_table **out, const struct route_conf *conf, unsigned n,
                       struct upstream *const *upstreams) NODISCARD;

/* route_table_destroy(t): free ${t} or NULL. */
void route_table_destroy(struct route_table *t);

/*
 * route_table_find(t, sni, alpn):
 * Return the upstream for a client that asks for ${sni} (in lower case; empty: no name) and offers
 * ${alpn} (as client_hello.alpn). NULL: no route matches.
 *
 * Owns:   the reference stays with ${t}
 */
struct upstream *route_table_find(const struct route_table *t, const char *sni,
                                  struct client_hello_bytes alpn);

#endif
