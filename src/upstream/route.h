/*
 * upstream/route: chooses an upstream by the server name and the protocols of a TLS client.
 *
 * The best match of the name decides: exact, then wildcard, then routes without a name. Of equal
 * matches, the first route in the configuration whose protocols match is taken. Names are found by
 * bisection.
 */
#ifndef UPSTREAM_ROUTE_H
#define UPSTREAM_ROUTE_H

#include "base/must.h"
#include "tls/client_hello.h"

struct route_table;
struct upstream;

/* A route matches if one of its names does, and one of its protocols. */
struct route_conf {
    const char *id;
    const char **names; /* see server_name_read_pattern() */
    unsigned n_names;   /* 0: any name, or no name */
    const char **protocols;
    unsigned n_protocols; /* 0: any protocols, or none */
    const char *upstream;
};

/*
 * route_table_create(out, conf, n, upstreams):
 * Compile ${n} routes; ${conf}[i] leads to ${upstreams}[i].
 *
 * Thread: any
 * Owns:   ${out} holds the upstreams; ${conf} must outlive ${out}
 * Errors: 0; -ENOMEM
 */
int route_table_create(struct route_table **out, const struct route_conf *conf, unsigned n,
                       struct upstream *const *upstreams) NODISCARD;

/*
 * route_table_destroy(t):
 * Free ${t} or NULL.
 *
 * Thread: any
 */
void route_table_destroy(struct route_table *t);

/*
 * route_table_find(t, sni, alpn):
 * The upstream for a client that asks for ${sni} (in lower case; empty: no name) and offers ${alpn}
 * (as client_hello.alpn). NULL: no route matches.
 *
 * Thread: any
 * Owns:   ${t} keeps the reference
 */
struct upstream *route_table_find(const struct route_table *t, const char *sni,
                                  struct client_hello_bytes alpn);

#endif
