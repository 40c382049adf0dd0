/*
 * upstream/upstream_server: a server: what its line in the configuration says, and what is known of
 * it.
 */
#ifndef UPSTREAM_UPSTREAM_SERVER_H
#define UPSTREAM_UPSTREAM_SERVER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/list.h"
#include "base/log.h"
#include "base/must.h"
#include "net/address.h"
#include "stats/counters.h"
#include "upstream/ejection.h"
#include "upstream/endpoint.h"

struct checker_target;
struct membership_slab;
struct spare;

/* What a line stands for. */
enum upstream_names {
    UPSTREAM_LITERAL,   /* its addresses, which are known */
    UPSTREAM_NAME_EACH, /* a host name: each address is a server */
    UPSTREAM_NAME_ONE,  /* a host name: one server with all addresses */
    UPSTREAM_SERVICE    /* SRV records: each is a server, or several */
};

/* One server line: `server.ID = ADDRESS [weight=N] [max_connections=N] [backup] ...`. */
struct upstream_server_conf {
    const char *id;
    const char *address_text; /* as written */
    enum upstream_names names;
    struct address *addresses; /* UPSTREAM_LITERAL */
    unsigned n_addresses;
    unsigned weight;                     /* 0 to 256; 0: no sessions; UPSTREAM_SERVICE: 0, or 1 */
    unsigned max_connections;            /* of each server; 0: any number */
    const struct address *check_address; /* NULL: where the server is */
    unsigned check_port;                 /* 0: the address' */
    bool backup;
    bool disabled; /* no sessions, and no health checks */
};

struct upstream_server {
    const struct upstream_server_conf *conf; /* of its line */
    struct endpoint endpoint;
    struct ejection ejection;
    struct log_limit log_limit;
    struct counters counters;
    struct counters_connects connects; /* of sessions; those that got a spare made none */
    struct spare *spare;               /* NULL: none are kept */

    /* Of upstream/membership; on the control loop. */
    struct list link;
    unsigned line;
    bool is_listed;   /* in the set of now */
    bool is_wanted;   /* in the next one */
    atomic_uint held; /* see membership_hold() */
    struct membership_slab *slab;
    struct checker_target *target; /* of server/checks; NULL: it is not checked */
    char name[];                   /* ID, or ID@ADDRESS when the line can be several */
};

/*
 * upstream_server_is_used(conf):
 * Does the configuration let the servers of this line get sessions?
 *
 * Thread: any
 */
static inline bool upstream_server_is_used(const struct upstream_server_conf *conf)
{
    return conf->weight > 0 && !conf->disabled;
}

/*
 * upstream_server_of(e):
 * The server whose endpoint ${e} is.
 *
 * Thread: any
 */
static inline struct upstream_server *upstream_server_of(struct endpoint *e)
{
    return CONTAINER_OF(e, struct upstream_server, endpoint);
}

#endif
