/*
 * listen/listener: what stays of a listener when its configuration is replaced.
 *
 *   listener: name, counters <- generation: settings, service <- socket: address, acceptor
 *                                                             <- session
 *
 * A reload gives each listener its next generation (listen/listener_generation), and each socket a
 * generation of the listener that now has its address (listen/listener_socket). listen/listeners
 * holds them all.
 */
#ifndef LISTEN_LISTENER_H
#define LISTEN_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "handlers/pipeline_conf.h"
#include "handlers/proxy_protocol.h"
#include "limits/acl.h"
#include "limits/admission.h"
#include "limits/ban.h"
#include "limits/client_table.h"
#include "limits/throttle.h"
#include "net/address.h"
#include "net/channel.h"
#include "net/sock.h"
#include "service/service.h"
#include "upstream/route.h"

struct arena;
struct access_log_format;
struct access_log;
struct address;
struct admission_ticket;
struct hold;
struct listener;
struct connection_limit;
struct tls_sections;

/* An access log. */
struct listener_log_conf {
    const char *name;  /* of its [access_log NAME]; NULL: the listener's own */
    const char *where; /* off (only the listener's own), stderr, syslog, journal or a path */
    const struct access_log_format *format;
    struct access_log_filter filter;
    bool at_connect; /* another line when the server is connected */
};

struct listener_access_log_conf {
    struct listener_log_conf own;
    const char **names; /* of [access_log NAME] sections, instead of `own`; NULL: none */
    unsigned n_names;
    struct listener_log_conf *logs; /* those of `names` */
    int64_t interval_ns;
};

enum listener_service { LISTENER_ECHO, LISTENER_PROXY };

enum listener_tls_start {
    LISTENER_TLS_DIRECT,
    LISTENER_TLS_POSTGRES /* behind PostgreSQL's SSLRequest */
};

struct listener_tls_conf {
    const char **names;            /* of [tls NAME] sections, the default first */
    unsigned n_names;              /* 0: no TLS */
    struct tls_sections *sections; /* NULL: no TLS; lives as long as listener_conf.memory */
    enum listener_tls_start start;
    int64_t handshake_timeout_ns;
};

/* A [limits NAME]: limits per client and bans that listeners share. */
struct limits_conf {
    struct client_table_conf clients;
    struct ban_conf ban;
    struct cidr_list ban_exempt;
    enum quota_over over_limit;
};

struct listener_conf {
    /* holds what the pointers below refer to; NULL: static data. See arena_hold() */
    struct arena *memory;
    const char *name;
    struct address *addresses;
    unsigned n_addresses;
    enum listener_service service;
    const char *upstream; /* NULL: an echo, or a proxy with routes only */
    struct route_conf *routes;
    unsigned n_routes;
    int64_t client_hello_timeout_ns; /* used with routes only */
    const char *mirror; /* upstream that gets a copy of the clients' bytes; NULL: none */
    unsigned mirror_buffer_bytes;
    struct pipeline_conf pipeline;
    struct listener_access_log_conf access_log;
    struct proxy_protocol_conf accept_proxy;
    struct listener_tls_conf tls;
    unsigned backlog;
    unsigned reuseport; /* listen sockets per address */
    struct sock_file unix_file;
    struct sock_options socket;
    struct acl_conf access;
    enum admission_verdict on_deny;
    struct session_conf session;
    struct quota_conf quota;
    const char *limits; /* the [limits NAME] that has the next four; NULL: they are its own */
    struct client_table_conf clients; /* limits per client */
    struct ban_conf ban;
    struct cidr_list ban_exempt; /* clients that are never banned */
    enum quota_over over_shared; /* as over_limit, for the three before; used with `limits` */
    enum quota_over over_limit;
    struct throttle_conf bandwidth;
};

/*
 * listener_conf_targets(conf) / listener_conf_target(conf, i):
 * Number of upstreams of ${conf} / the name of number ${i}: 0 is conf->upstream (perhaps NULL),
 * then come those of the routes, each with its shares (NULL: it refuses).
 */
unsigned listener_conf_targets(const struct listener_conf *conf);
const char *listener_conf_target(const struct listener_conf *conf, unsigned i);

/*
 * listener_conf_log(conf, i):
 * Access log ${i} of ${conf}; NULL after the last. There are at most SERVICE_ACCESS_LOGS.
 */
const struct listener_log_conf *listener_conf_log(const struct listener_conf *conf, unsigned i);

/*
 * listener_create(out, name, quota, connection_limit):
 * Create a listener without generation, with its own limits ${quota}, and ${connection_limit}, that
 * of the process.
 *
 * Owns:   the caller has a reference; ${name} is copied; ${connection_limit} must outlive ${out}
 * Errors: 0; -ENOMEM
 */
int listener_create(struct listener **out, const char *name, const struct quota_conf *quota,
                    struct connection_limit *connection_limit) NODISCARD;

/*
 * listener_enter(ls, ticket, client):
 * Count a session of another process in, with ${client}, whatever the limits are, and return the
 * service of the current generation; NULL: ${ls} was removed.
 *
 * Thread: control loop
 * Owns:   the caller has a reference to the generation, until listener_left(), and ${ticket}
 */
const struct service *listener_enter(struct listener *ls, struct admission_ticket *ticket,
                                     const struct address *client);

/*
 * listener_left(service):
 * Release the connection-limit slot and the generation of a session of ${service} that has ended.
 */
void listener_left(const struct service *service);

/*
 * listener_hold(ls) / listener_release(ls):
 * Add a reference and return ${ls} / release one: the last frees ${ls}.
 */
struct listener *listener_hold(struct listener *ls);
void listener_release(struct listener *ls);

/*
 * listener_name(ls) / listener_pause_hold(ls):
 * Name in the configuration / hold that an administrator closes to pause ${ls}.
 *
 * Owns:   valid as long as ${ls}
 */
const char *listener_name(const struct listener *ls);
struct hold *listener_pause_hold(struct listener *ls);

#endif
