/*
 * upstream/upstream: a named group of servers that proxies connect to.
 *
 *   upstream_pick -> the session connects, and stays -> upstream_leave, with its outcome
 */
#ifndef UPSTREAM_UPSTREAM_H
#define UPSTREAM_UPSTREAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/must.h"
#include "net/address.h"
#include "net/connector.h"
#include "net/proxy_header.h"
#include "stats/counters.h"
#include "upstream/balancer.h"
#include "upstream/check.h"
#include "upstream/health.h"
#include "upstream/membership.h"
#include "upstream/retry_budget.h"
#include "upstream/spare.h"
#include "upstream/upstream_server.h"
#include "upstream/wait_queue.h"

struct arena;

/* For the sessions of a server that goes down. */
enum upstream_on_down { UPSTREAM_DOWN_KEEP, UPSTREAM_DOWN_CLOSE };

enum upstream_check { UPSTREAM_CHECK_OFF, UPSTREAM_CHECK_TCP };

struct upstream_checks_conf {
    enum upstream_check kind;
    struct check_conf check;
    struct health_conf health;
    enum upstream_on_down on_down;
    unsigned on_down_rate; /* sessions a second; 0: all at once */
};

struct upstream_conf {
    struct arena *memory; /* of all that is pointed at below; NULL: static. See arena_hold() */
    const char *name;
    struct upstream_server_conf *servers;
    unsigned n_servers;
    enum balancer_kind balance;
    unsigned hash_balance_factor; /* percent; 0: unbounded */
    unsigned panic_threshold;     /* percent; 0: never */
    int64_t slow_start_ns;        /* 0: none */
    int64_t connect_timeout_ns;   /* total for all addresses of a server */
    struct connector_conf connect;
    struct proxy_header_conf send_proxy; /* PROXY header sent to the server */
    int64_t retry_timeout_ns;            /* total for all servers; 0: none */
    unsigned retries;                    /* further servers to try */
    unsigned retry_budget;               /* percent; 0: no delayed retries */
    int64_t idle_timeout_ns;             /* read-idle of the server; 0: none */
    struct ejection_conf ejection;
    unsigned queue_length; /* 0: no waiting */
    int64_t queue_timeout_ns;
    struct upstream_checks_conf checks;
    struct spare_conf spare;
    int64_t resolve_interval_ns; /* 0: resolve once */
    int64_t resolve_interval_min_ns;
    bool resolve_required; /* do not start with unknown names */
};

struct upstream {
    const struct upstream_conf *conf;
    struct loop_group *workers;
    struct membership membership;
    struct ejection_group ejection;
    struct wait_queue waiting;
    bool bounded; /* some server has max_connections */
    struct endpoint_group group;
    struct spare_group spares;
    struct log_limit log_limit;
    struct counters counters;
    struct retry_budget retry_budget;
    _Atomic uint64_t late_checks;
};

enum upstream_outcome {
    UPSTREAM_WORKED,
    UPSTREAM_FAILED, /* no connection; or a reset before the first byte (ejection.resets) */
    UPSTREAM_UNKNOWN /* not the server's doing, or recorded before */
};

/*
 * upstream_starts_down(conf):
 * True if new servers are ENDPOINT_DOWN until checks pass.
 *
 * Thread: any
 */
static inline bool upstream_starts_down(const struct upstream_conf *conf)
{
    return conf->checks.kind != UPSTREAM_CHECK_OFF &&
           conf->checks.health.initial != HEALTH_STARTS_UP;
}

/*
 * upstream_create(out, conf, workers):
 * Build the group.
 *
 * Thread: before start
 * Owns:   ${conf} and ${workers}, its users (NULL: tests), are borrowed and must outlive it
 * Errors: 0; -ENOMEM
 */
int upstream_create(struct upstream **out, const struct upstream_conf *conf,
                    struct loop_group *workers) NODISCARD;

/*
 * upstream_pick(up, pick, out):
 * Pick a server that ${pick} has not tried.
 *
 * Thread: a worker's loop, or the test's
 * Owns:   the caller calls upstream_leave()
 * Errors: as balancer_pick(); -EBUSY also when sessions wait in upstream.waiting
 */
int upstream_pick(struct upstream *up, struct balancer_pick_state *pick,
                  struct upstream_server **out) NODISCARD;

/*
 * upstream_connected(up, server):
 * Record a connect as success, unless resets are failures.
 *
 * Thread: any
 */
void upstream_connected(struct upstream *up, struct upstream_server *server);

/*
 * upstream_passed(up, server):
 * Record a passed check: ends an ejection, unless resets are failures.
 *
 * Thread: any
 */
void upstream_passed(struct upstream *up, struct upstream_server *server);

/*
 * upstream_leave(up, server, outcome):
 * Count out a session at ${server}.
 *
 * Thread: any
 */
void upstream_leave(struct upstream *up, struct upstream_server *server,
                    enum upstream_outcome outcome);

/*
 * upstream_serve(up):
 * Assign places to waiting sessions when a server may be usable again.
 *
 * Thread: any
 */
void upstream_serve(struct upstream *up);

/*
 * upstream_log_stats(up):
 * Log the statistics of group and servers at notice level.
 *
 * Thread: any
 */
void upstream_log_stats(struct upstream *up);

/*
 * upstream_set_addresses(up, server, list, n):
 * endpoint_set_addresses() for a server of UPSTREAM_NAME_ONE.
 *
 * Thread: one at a time for each server
 * Owns:   ${list} is copied
 * Errors: as endpoint_set_addresses()
 */
int upstream_set_addresses(struct upstream *up, struct upstream_server *server,
                           const struct address *list, unsigned n) NODISCARD;

/*
 * upstream_destroy(up):
 * Free ${up} or NULL.
 *
 * Thread: after the last worker and the resolver have ended
 */
void upstream_destroy(struct upstream *up);

#endif
