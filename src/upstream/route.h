/*
 * upstream/route: choose an upstream by what is known of a client: its address, its first bytes and
 * its ClientHello, or by its silence.
 *
 * Routes with the exact server name come first, then wildcards, then routes without a name. Within
 * each of these groups, the first route in the configuration whose conditions hold is taken. It is
 * taken as soon as the bytes decide, so a client may be asked for more several times. If a route
 * with `after_ns` holds, the client has been silent for so long: routes that wait for bytes or a
 * longer silence are passed over.
 */
#ifndef UPSTREAM_ROUTE_H
#define UPSTREAM_ROUTE_H

#include "base/must.h"
#include "net/cidr.h"
#include "tls/client_hello.h"

struct address;
struct route_table;
struct upstream;

/* Longest `first`. */
#define ROUTE_FIRST_BYTES 256

/* Bits of route_conf.tls: no TLS; or the highest version that the client offers. */
enum { ROUTE_TLS_NO = 1 << 0, ROUTE_TLS_1_2 = 1 << 1, ROUTE_TLS_1_3 = 1 << 2 };

struct route_first {
    const uint8_t *at;
    size_t n;
};

/* Shares of the clients, in hundredths of a percent. */
#define ROUTE_SHARE_ALL 10000

struct route_share {
    const char *upstream;
    unsigned until; /* sum of the shares up to this one; the last is ROUTE_SHARE_ALL */
};

/* A route holds if all its conditions do. A condition holds if one of its values does. */
struct route_conf {
    const char *id;
    const char **names; /* see server_name_read_pattern() */
    unsigned n_names;   /* 0: clients with any name or none match, as with the next ones */
    const char **protocols;
    unsigned n_protocols;
    struct cidr_list clients;
    struct route_first *first; /* what the client's bytes begin with */
    unsigned n_first;
    unsigned tls;         /* ROUTE_TLS_ bits; 0: any client */
    int64_t after_ns;     /* for clients that send nothing for so long; 0: any client */
    const char *upstream; /* NULL: refuse the client */
    struct route_share *shares;
    unsigned n_shares; /* 0: all clients go to `upstream`; else that is the first share's */
};

/* What is known of the ClientHello. */
enum route_hello {
    ROUTE_HELLO_UNKNOWN, /* too few bytes */
    ROUTE_HELLO_NONE,    /* the client does not begin TLS */
    ROUTE_HELLO_PART,
    ROUTE_HELLO_READ
};

struct route_client {
    const struct address *address;
    uint64_t key;             /* as session_key(), if a route has shares: chooses among them */
    struct route_first first; /* the bytes so far */
    enum route_hello hello;
    const char *sni; /* with ROUTE_HELLO_READ, as the next two; lower case; empty: no name */
    struct client_hello_bytes alpn; /* as client_hello.alpn */
    unsigned tls;                   /* a ROUTE_TLS_ bit; 0: an older version */
    int64_t silent_ns;              /* no byte was received for so long; 0 if one was */
    bool is_complete;               /* no further bytes can be waited for */
};

struct route_choice {
    const char *id;            /* NULL: no route holds */
    struct upstream *upstream; /* NULL: the route refuses the client */
};

/*
 * route_table_create(out, conf, n, upstreams):
 * Compile ${n} routes. ${upstreams}: for each route that of each share, or else one.
 *
 * Owns:   ${out} references the upstreams; ${conf} must outlive ${out}
 * Errors: 0; -ENOMEM
 */
int route_table_create(struct route_table **out, const struct route_conf *conf, unsigned n,
                       struct upstream *const *upstreams) NODISCARD;

/* route_table_destroy(t): free ${t} or NULL. */
void route_table_destroy(struct route_table *t);

/*
 * route_table_find(t, client, out):
 * Choose the route of ${client}.
 *
 * Owns:   the reference of ${out} stays with ${t}
 * Errors: 0; -EAGAIN (the next bytes decide)
 */
int route_table_find(const struct route_table *t, const struct route_client *client,
                     struct route_choice *out) NODISCARD;

/*
 * route_table_needs_hello(t) / route_table_needs_tls(t):
 * Does a route ask for what only a ClientHello says / do all routes?
 */
bool route_table_needs_hello(const struct route_table *t);
bool route_table_needs_tls(const struct route_table *t);

/*
 * route_table_takes_silence(t, client):
 * Does a route with `after_ns` hold for ${client}?
 */
bool route_table_takes_silence(const struct route_table *t, const struct route_client *client);

/*
 * route_table_next_after_ns(t, silent_ns):
 * Return the shortest `after_ns` that is longer than ${silent_ns}; 0: none.
 */
int64_t route_table_next_after_ns(const struct route_table *t, int64_t silent_ns);

/* route_table_has_shares(t): is route_client.key needed? */
bool route_table_has_shares(const struct route_table *t);

/* route_tls_of(hello): the ROUTE_TLS_ bit of the highest version in ${hello};
 * 0: an older one. */
unsigned route_tls_of(const struct client_hello *hello);

/* route_conf_targets(conf): number of upstreams that ${conf} leads to; 1 if it
 * refuses. */
static inline unsigned route_conf_targets(const struct route_conf *conf)
{
    return conf->n_shares > 0 ? conf->n_shares : 1;
}

/*
 * route_conf_needs_tls(conf): does the route hold for clients with TLS only? `first` is not looked
 * at.
 */
static inline bool route_conf_needs_tls(const struct route_conf *conf)
{
    return conf->n_names > 0 || conf->n_protocols > 0 ||
           (conf->tls != 0 && (conf->tls & ROUTE_TLS_NO) == 0);
}

#endif
