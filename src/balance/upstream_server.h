/* balance/upstream_server: a server: configuration and state. */
#ifndef BALANCE_UPSTREAM_SERVER_H
#define BALANCE_UPSTREAM_SERVER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "balance/ejection.h"
#include "balance/endpoint.h"
#include "base/ref.h"
#include "base/list.h"
#include "base/log.h"
#include "base/must.h"
#include "net/address.h"
#include "net/proxy_header.h"
#include "stats/counters.h"
#include "tls/tls_counters.h"

struct checker_target;
struct membership_slab;
struct server_line;
struct upstream_spare;
struct tls_sessions;

enum upstream_names {
    UPSTREAM_LITERAL,   /* address: one server */
    UPSTREAM_NAME_EACH, /* host name: a server for each address */
    UPSTREAM_NAME_ONE,  /* host name: one server */
    UPSTREAM_SERVICE    /* SRV records: one server or more for each record */
};

struct upstream_server_conf {
    const char *id;
    const char *address_text;
    enum upstream_names names;
    struct address *addresses; /* of UPSTREAM_LITERAL only */
    unsigned n_addresses;
    unsigned weight; /* 0: no sessions. UPSTREAM_SERVICE: if not 0, SRV records give weights */
    unsigned max_connections;            /* of each server; 0: unlimited */
    const struct address *check_address; /* NULL: the server's address */
    unsigned check_port;                 /* 0: the port of the address */
    int64_t check_interval_ns;           /* 0: as the upstream, like rise and fall */
    unsigned rise, fall;
    const struct address *agent_address; /* NULL: the server's, with agent_port */
    unsigned agent_port;                 /* 0: as the upstream */
    bool has_no_agent;
    bool unchecked;      /* no health checks */
    bool never_ejected;  /* failed sessions do not eject it */
    bool has_send_proxy; /* else as the upstream */
    enum proxy_header_version send_proxy;
    bool backup;
    bool disabled; /* no sessions, no health checks, no lookups */
    bool by_hand;  /* an administrator added it, or replaced its line */
};

struct upstream_server {
    /* The configuration of `line`; who may read it, and how long: see `conf` of struct upstream. */
    _Atomic(const struct upstream_server_conf *) conf;
    /* State of `line`, with the administrator's changes; any thread may read it. */
    atomic_bool is_disabled, is_draining, is_backup, is_by_hand;
    struct endpoint endpoint;
    struct ejection ejection;
    struct log_limit log_limit;
    struct counters counters;
    struct counters_connects connects;      /* of sessions, not of spare connections */
    _Atomic(struct upstream_spare *) spare; /* NULL: no spare connections are kept */
    struct tls_counters tls;
    _Atomic(struct tls_sessions *) tls_sessions; /* NULL: none so far */

    /* Owned by upstream/membership, on the control loop. */
    struct list link;
    struct server_line *line;           /* a reference */
    unsigned position;                  /* of the line in the configuration */
    unsigned place_weight, place_level; /* from struct membership_place */
    bool is_listed;                     /* in the set */
    uint64_t gone_with;                 /* number of the first set without it; 0: it was in none */
    bool is_wanted;                     /* in the next set */
    bool was_in_use;                    /* in another process: in use again with the next set */
    struct ref references;              /* one is the membership's */
    struct membership_slab *slab;
    struct checker_target *target, *agent; /* owned by server/checks */
    bool agent_is_bad;                     /* its last answer was none, or bad */
    const char *address_text; /* for statistics: the server's address, or ADDRESS of its line */
    char name[];              /* ID, or ID@ADDRESS if the line can be several servers */
};

/* upstream_server_is_used(conf): may servers of a line ${conf} get sessions? */
static inline bool upstream_server_is_used(const struct upstream_server_conf *conf)
{
    return conf->weight > 0 && !conf->disabled;
}

/*
 * upstream_server_hold(server) / upstream_server_release(server):
 * Keep a server across tasks, even without sessions / release it.
 *
 * Thread: as membership_now(), in the task that found the server / any
 */
static inline void upstream_server_hold(struct upstream_server *server)
{
    ref_hold(&server->references);
}

static inline void upstream_server_release(struct upstream_server *server)
{
    MUST(!ref_release(&server->references));
}

/* upstream_server_of(e): return the server of ${e}. */
static inline struct upstream_server *upstream_server_of(struct endpoint *e)
{
    return CONTAINER_OF(e, struct upstream_server, endpoint);
}

#endif
