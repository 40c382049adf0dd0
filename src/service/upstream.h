/*
 * service/upstream: a named group of servers that a proxy connects to.
 *
 * The group is built once from its configuration and then read by every worker; what changes while they run is all
 * atomics: the balancer's counter, the log limits, and where a server with a host name is.
 */
#ifndef SERVICE_UPSTREAM_H
#define SERVICE_UPSTREAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/must.h"
#include "net/address.h"
#include "net/connector.h"
#include "service/balancer.h"

/* One server line: `server.ID = ADDRESS [weight=N] [backup]`. */
struct upstream_server_conf {
    const char *id;
    const char *address_text;  /* as written */
    struct address *addresses; /* what can be known of it without asking a name service */
    unsigned n_addresses;      /* 0: a host name */
    unsigned weight;           /* 1 to 256 */
    bool backup;
};

struct upstream_conf {
    const char *name;
    struct upstream_server_conf *servers;
    unsigned n_servers;
    int64_t connect_timeout_ns; /* one deadline for all addresses of a server */
    struct connector_conf connect;
    unsigned retries; /* other servers to try after the first */
};

/* Where a server is, in the order to try; immutable once it is published. */
struct upstream_addresses {
    struct upstream_addresses *older; /* what it took the place of */
    unsigned n;                       /* at least 1 */
    struct address list[];
};

struct upstream_server {
    const struct upstream_server_conf *conf;
    /*
     * note: addresses. Published with release by the one who looks the name up, read with acquire by every worker. A
     * session uses what it has read for as long as it connects, so what was replaced is kept until upstream_destroy().
     * The same answer again replaces nothing, and a name that is known is not asked for again; whoever changes that
     * must know when the last session has let go of the old ones.
     */
    _Atomic(struct upstream_addresses *) addresses; /* NULL: a host name that is not known yet */
    struct log_limit log_limit;
};

struct upstream {
    const struct upstream_conf *conf;
    struct upstream_server
        *servers; /* conf->n_servers of them, in the order of the configuration */
    struct balancer balancer;
};

/*
 * upstream_create(out, conf):
 * Build the group.
 *
 * Thread: before start
 * Owns:   ${conf} is borrowed and must outlive the group
 * Errors: 0; -ENOMEM
 */
int upstream_create(struct upstream **out, const struct upstream_conf *conf) MUST_CHECK;

/*
 * upstream_addresses(server):
 * Where ${server} is now; NULL when its name is not known yet.
 *
 * Thread: any
 * Owns:   nothing; what it gives stays as it is until upstream_destroy()
 * Errors: NULL
 */
const struct upstream_addresses *upstream_addresses(const struct upstream_server *server);

/*
 * upstream_set_addresses(server, list, n):
 * From now on ${server} is at these ${n} > 0 addresses. Nothing happens if it is at the same already, in any order.
 *
 * Thread: one at a time for each server
 * Owns:   ${list} is copied
 * Errors: 0; -ENOMEM (nothing changed)
 */
int upstream_set_addresses(struct upstream_server *server, const struct address *list,
                           unsigned n) MUST_CHECK;

/*
 * upstream_destroy(up):
 * Free the group; NULL is allowed.
 *
 * Thread: after the last worker, and whoever looks up names, has ended
 * Errors: none
 */
void upstream_destroy(struct upstream *up);

#endif
