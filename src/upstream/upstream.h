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
#include <string.h>

#include "balance/balancer.h"
#include "balance/retry_budget.h"
#include "balance/server_tls.h"
#include "balance/upstream_server.h"
#include "balance/wait_queue.h"
#include "base/log.h"
#include "base/must.h"
#include "base/ref.h"
#include "engine/lock.h"
#include "check/check.h"
#include "check/checker.h"
#include "check/health.h"
#include "net/address.h"
#include "net/connector.h"
#include "net/proxy_header.h"
#include "stats/counters.h"
#include "upstream/membership.h"
#include "upstream/upstream_spares.h"
#include "upstream/upstream_state.h"

struct arena;

/* What the hashing kinds of balancer know a client by; without it: the client's address. */
enum upstream_hash_by {
    UPSTREAM_HASH_CLIENT,      /* address */
    UPSTREAM_HASH_CLIENT_PORT, /* address and port */
    UPSTREAM_HASH_SNI,         /* server name that the client asks for */
    UPSTREAM_HASH_DESTINATION, /* address and port that the client has connected to */
    UPSTREAM_HASH_TLV          /* value of a field in its PROXY header */
};

struct upstream_hash_key {
    enum upstream_hash_by by;
    uint8_t tlv; /* type of the field */
};

/* What the hashing kinds of balancer know a server by. */
enum upstream_hash_server {
    UPSTREAM_HASH_ID,     /* ID, and the address of one of several servers of a line */
    UPSTREAM_HASH_ADDRESS /* see membership_hash_address() */
};

/* What happens to the sessions of a server that goes down. */
enum upstream_on_down { UPSTREAM_DOWN_KEEP, UPSTREAM_DOWN_CLOSE };

/* What happens to the sessions of backups when other servers come into use instead. */
enum upstream_on_up { UPSTREAM_UP_KEEP, UPSTREAM_UP_CLOSE };

/* Which clients leave the queue when they end their stream there: all, or those without bytes. */
enum upstream_abandoned { UPSTREAM_ABANDONED_KEEP, UPSTREAM_ABANDONED_DROP };

/* May servers that have returned take over from those in use, which are fit? */
enum upstream_failback { UPSTREAM_FAILBACK_YES, UPSTREAM_FAILBACK_NO };

enum upstream_check {
    UPSTREAM_CHECK_OFF,
    UPSTREAM_CHECK_TCP,
    UPSTREAM_CHECK_TLS,
    UPSTREAM_CHECK_HTTP,
    UPSTREAM_CHECK_STEPS, /* this and the kinds below are steps; those below have names */
    UPSTREAM_CHECK_REDIS,
    UPSTREAM_CHECK_REDIS_MASTER,
    UPSTREAM_CHECK_PGSQL,
    UPSTREAM_CHECK_MYSQL,
    UPSTREAM_CHECK_SMTP,
    UPSTREAM_CHECK_LDAP
};

/* check_tls of plain checks beside TLS of sessions: not the NAME of a section. */
#define UPSTREAM_CHECK_TLS_OFF "off"

struct upstream_checks_conf {
    enum upstream_check kind;
    struct check_conf check; /* tls is check_tls; without slot: plain, or as upstream_conf.tls */
    enum checker_header header;
    const char *user; /* of steps with names */
    struct health_conf health;
    enum upstream_on_down on_down;
    enum upstream_on_up on_up;
    unsigned on_down_rate; /* sessions to reset per second; 0: all at once */
};

struct upstream_resolver_conf {
    const char *name;             /* NAME of the [resolver NAME]; NULL: resolv.conf */
    struct name_servers *servers; /* NULL: none; lives as long as upstream_conf.memory */
};

/* Agents of the servers: see check/agent.h. */
struct upstream_agent_conf {
    unsigned port; /* 0: none, except servers that have an agent of their own */
    int64_t interval_ns;
    struct check_bytes send;
};

struct upstream_conf {
    /* owns all that the pointers below refer to; NULL: static data */
    struct arena *memory;
    const char *name;
    struct upstream_server_conf *servers;
    unsigned n_servers;
    enum balancer_kind balance;
    struct upstream_hash_key hash_key;
    enum upstream_hash_server hash_server;
    /* maximum sessions of a server, in percent of its fair share; 0: no limit */
    unsigned hash_balance_factor;
    unsigned panic_threshold; /* percent of the servers that must be fit, else panic; 0: never */
    bool backup_when_full;    /* backups get sessions when all other servers are full */
    enum upstream_failback failback;
    int64_t slow_start_ns;      /* 0: no slow start */
    int64_t connect_timeout_ns; /* total for all addresses of a server */
    struct connector_conf connect;
    struct proxy_header_conf send_proxy;
    struct upstream_tls_conf tls;     /* begins after the PROXY header */
    int64_t retry_timeout_ns;         /* total for all servers; 0: no limit */
    unsigned retries;                 /* servers to try after the first */
    unsigned retry_budget;            /* retries after a pause, per 100 sessions; 0: none */
    int64_t idle_timeout_ns;          /* longest time without bytes from the server; 0: no limit */
    int64_t server_closed_timeout_ns; /* for a client whose server has ended; 0: no limit */
    struct ejection_conf ejection;
    unsigned queue_length; /* sessions that may wait for a server; 0: no queue */
    int64_t queue_timeout_ns;
    enum upstream_abandoned queue_abandoned;
    struct upstream_checks_conf checks;
    struct upstream_agent_conf agent;
    struct upstream_spares_conf spare;
    struct upstream_resolver_conf resolver;
    int64_t resolve_interval_ns; /* 0: resolve once */
    int64_t resolve_interval_min_ns;
    int64_t resolve_hold_ns; /* CLOCK_NEVER: no end */
    bool resolve_required;   /* reject the configuration if a name does not resolve */
};

/* The names of some servers, for a log line; of more, the number. */
#define UPSTREAM_IN_USE_BYTES 256

/* Servers in use that have been logged; under the lock. */
struct upstream_in_use {
    struct lock lock;
    uint64_t n_moves;         /* of the group's, those that were looked at */
    _Atomic uint64_t changes; /* moves, also in the processes before */
    char names[UPSTREAM_IN_USE_BYTES];
    bool are_backups;
    bool is_continued; /* a server in use in another process was put in use; its owner's thread */
    atomic_bool backups_are_over; /* see upstream_backups_are_over(); no lock needed */
};

struct upstream {
    char *name;
    /*
     * Replaced as a whole; the old configuration is released after a grace period (note: grace in
     * engine/grace.h). Worker and control loops read it within a task; other threads must not.
     */
    _Atomic(const struct upstream_conf *) conf;
    struct loop_group *workers;
    struct tls_handshakes *handshakes;
    struct membership membership;
    struct ejection_group ejection;
    struct wait_queue waiting;
    atomic_bool bounded; /* sessions may queue: max_connections or a pause has been set */
    /*
     * note: users. References by its owner, sessions and pending timers. Add one only while
     * you own one, or within a task that found the upstream in the configuration.
     */
    struct ref references;
    struct endpoint_group group;
    struct upstream_spares spares;
    struct log_limit log_limit;
    struct counters counters;
    struct retry_budget retry_budget;
    _Atomic uint64_t late_checks;
    struct upstream_state state;
    struct upstream_in_use in_use;
    atomic_uint n_replaced; /* configurations whose grace period has not ended; control loop adds */
};

/* What upstreams share. NULL: none, in tests. */
struct upstream_env {
    struct loop_group *workers;
    struct tls_handshakes *handshakes; /* for TLS with servers */
    const struct upstream_spares_ops *spares;
};

struct upstream_next {
    struct upstream *upstream;
    const struct upstream_conf *conf;
};

enum upstream_outcome {
    UPSTREAM_WORKED,
    UPSTREAM_FAILED, /* no connection; or a reset before the first byte (ejection.resets) */
    UPSTREAM_UNKNOWN /* not caused by the server, or already recorded */
};

/*
 * upstream_is_checked(conf, line) / upstream_starts_down(conf, line):
 * Do servers of ${line} have health checks, unless disabled? / are new ones ENDPOINT_DOWN until
 * checks pass?
 */
static inline bool upstream_is_checked(const struct upstream_conf *conf,
                                       const struct upstream_server_conf *line)
{
    return conf->checks.kind != UPSTREAM_CHECK_OFF && !line->unchecked;
}

static inline bool upstream_starts_down(const struct upstream_conf *conf,
                                        const struct upstream_server_conf *line)
{
    return upstream_is_checked(conf, line) && conf->checks.health.initial != HEALTH_STARTS_UP;
}

/* upstream_has_agent(conf, line): do servers of ${line} have an agent? */
static inline bool upstream_has_agent(const struct upstream_conf *conf,
                                      const struct upstream_server_conf *line)
{
    return !line->has_no_agent &&
           (conf->agent.port > 0 || line->agent_port > 0 || line->agent_address);
}

/* upstream_send_proxy(conf, line): return the PROXY header for servers of ${line}. */
static inline struct proxy_header_conf upstream_send_proxy(const struct upstream_conf *conf,
                                                           const struct upstream_server_conf *line)
{
    struct proxy_header_conf header = conf->send_proxy;

    if (line->has_send_proxy)
        header.version = line->send_proxy;
    return header;
}

/* upstream_checks_with_tls(conf): do checks make TLS handshakes? */
static inline bool upstream_checks_with_tls(const struct upstream_conf *conf)
{
    const char *name = conf->checks.check.tls.name;

    return name ? strcmp(name, UPSTREAM_CHECK_TLS_OFF) != 0 : conf->tls.name != NULL;
}

/*
 * upstream_first_checks_ns(conf):
 * How long to wait, at most, until new servers that start down have a first result.
 */
int64_t upstream_first_checks_ns(const struct upstream_conf *conf);

/*
 * upstream_log_unused(up):
 * Log one line for each server that gets no connections.
 *
 * Thread: control loop, or before start
 */
void upstream_log_unused(const struct upstream *up);

/*
 * upstream_create(out, conf, env):
 * Create an upstream and its first server set. ${env} NULL: all of it is NULL.
 *
 * Thread: control loop, or main before start
 * Owns:   all in ${env} must outlive ${out}, which copies ${conf} and references its memory; if
 *         the memory is NULL, ${conf} must outlive ${out}
 * Errors: 0; -ENOMEM
 */
int upstream_create(struct upstream **out, const struct upstream_conf *conf,
                    const struct upstream_env *env) NODISCARD;

/*
 * upstream_pick(up, pick, out):
 * Pick a server that ${pick} has not tried.
 *
 * Thread: a worker's loop
 * Owns:   the caller calls upstream_leave()
 * Errors: as balancer_pick(); -EBUSY also when sessions wait in ${up}->waiting, or ${up} is
 *         paused
 */
int upstream_pick(struct upstream *up, struct balancer_pick_state *pick,
                  struct upstream_server **out) NODISCARD;

/*
 * upstream_connected(up, server) / upstream_passed(up, server):
 * Record a success / end the ejection of ${server} because a check has passed. Both do
 * nothing if resets count as failures (ejection.resets).
 *
 * Thread: a worker's loop / control loop
 */
void upstream_connected(struct upstream *up, struct upstream_server *server);
void upstream_passed(struct upstream *up, struct upstream_server *server);

/*
 * upstream_backups_are_over(up):
 * Have other servers come into use instead of backups, since the last call?
 *
 * Thread: control loop
 */
static inline bool upstream_backups_are_over(struct upstream *up)
{
    return atomic_exchange(&up->in_use.backups_are_over, false);
}

/*
 * upstream_leave(up, server, outcome):
 * End a session at ${server} and record its outcome.
 *
 * Thread: a worker's loop
 */
void upstream_leave(struct upstream *up, struct upstream_server *server,
                    enum upstream_outcome outcome);

/*
 * upstream_serve(up):
 * Assign servers to waiting sessions. Call it when a server may have become usable.
 */
void upstream_serve(struct upstream *up);

/*
 * upstream_pause(up, max_held, until_ns):
 * Pause ${up}: new sessions wait, see wait_queue_pause().
 *
 * Thread: control loop, or main before start
 */
void upstream_pause(struct upstream *up, unsigned max_held, int64_t until_ns);

/*
 * upstream_set_addresses(up, server, list, n) / upstream_withdraw(up, server):
 * Call endpoint_set_addresses() for a server of UPSTREAM_NAME_ONE, and report a change / no session
 * goes to the server until it has addresses again.
 *
 * Thread: any, one at a time for each server
 * Owns:   ${list} is copied
 * Errors: as endpoint_set_addresses()
 */
int upstream_set_addresses(struct upstream *up, struct upstream_server *server,
                           const struct address *list, unsigned n) NODISCARD;
void upstream_withdraw(struct upstream *up, struct upstream_server *server);

/*
 * upstream_hold(up) / upstream_release(up):
 * Add a reference and return ${up} / release a reference (see note: users).
 */
struct upstream *upstream_hold(struct upstream *up);
void upstream_release(struct upstream *up);

/*
 * upstream_sweep_unused(up) / upstream_is_unused(up):
 * Free unused removed servers; true if others are still used / has the removed ${up} no references
 * and no waiting sessions? Then it may be destroyed after a grace period of the workers.
 *
 * Thread: control loop
 */
bool upstream_sweep_unused(struct upstream *up);
bool upstream_is_unused(const struct upstream *up);

/*
 * upstream_destroy(up):
 * Free ${up} or NULL.
 *
 * Thread: control loop, see upstream_is_unused(), or main while neither loops nor the executor run
 */
void upstream_destroy(struct upstream *up);

#endif
