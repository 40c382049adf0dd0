/*
 * service/upstream: a named group of servers that a proxy connects to.
 *
 * The group is built once from its configuration and then read by every worker; what workers share of it
 * while running are the balancer's counter and the log limits, all atomics.
 */
#ifndef SERVICE_UPSTREAM_H
#define SERVICE_UPSTREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/must.h"
#include "net/address.h"
#include "service/balancer.h"

/* One server line: `server.ID = ADDRESS [weight=N] [backup]`. A name may have several addresses. */
struct upstream_server_conf {
    const char *id;
    const char *address_text; /* as written */
    struct address *addresses;
    unsigned n_addresses;
    unsigned weight; /* 1 to 256 */
    bool backup;
};

struct upstream_conf {
    const char *name;
    struct upstream_server_conf *servers;
    unsigned n_servers;
    int64_t connect_timeout_ns; /* one deadline for all addresses of a server */
    unsigned retries;           /* other servers to try after the first */
};

struct upstream_server {
    const struct upstream_server_conf *conf;
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
 * upstream_destroy(up):
 * Free the group; NULL is allowed.
 *
 * Thread: after the last worker has ended
 * Errors: none
 */
void upstream_destroy(struct upstream *up);

#endif
