/*
 * service/service: a listener's service (echo or proxy) and its settings.
 *
 * Each generation (configuration) of a listener has one, immutable. A session uses it until
 * session_carry_over().
 */
#ifndef SERVICE_SERVICE_H
#define SERVICE_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "net/channel.h"
#include "stats/access_log_filter.h"

struct chooser_rounds;
struct admission;
struct access_log_format;
struct access_log;
struct counters;
struct pipeline_template;
struct proxy_protocol_gate;
struct session_routes;
struct service_ops;
struct mirror_plan;
struct session_tls_conf;
struct throttle_plan;
struct upstream;

/* When a proxy connects a server. */
enum session_connect_on { SESSION_CONNECT_ON_ACCEPT, SESSION_CONNECT_ON_FIRST_BYTE };

/* Settings of one session. A timeout of 0 is off. */
struct session_conf {
    enum session_connect_on connect_on;
    enum splice_mode splice;
    int64_t idle_timeout_ns;        /* no bytes in either direction */
    int64_t client_idle_timeout_ns; /* no bytes from the client */
    int64_t half_close_timeout_ns;  /* no bytes, and one direction has ended */
    int64_t first_byte_timeout_ns;  /* no first byte from the client after all legs are open */
    int64_t max_lifetime_ns;
    unsigned lifetime_jitter; /* shorten each lifetime at random, by at most this percentage */
    struct channel_linger_conf linger;
};

/* Limit of `n_access_logs`. */
#define SERVICE_ACCESS_LOGS 8

/* An access log, and what the service writes there. */
struct service_access_log {
    struct access_log *log;
    const struct access_log_format *format;
    struct access_log_filter filter;
    bool at_connect; /* another line when a session opens */
};

struct service {
    const struct service_ops *ops;
    const struct session_conf *conf;
    const char *listener;
    struct counters *counters;           /* NULL: not counted */
    struct chooser_rounds *rounds;       /* of this listener's clients; NULL: of the workers */
    struct admission *admission;         /* NULL: all clients are served */
    struct upstream *upstream;           /* proxy only; NULL: only routes choose an upstream */
    struct session_routes *routes;       /* choose the upstream by ClientHello; NULL: no routes */
    const struct mirror_plan *mirror;    /* NULL: clients are not mirrored */
    struct proxy_protocol_gate *proxies; /* rules for PROXY headers; NULL: none expected */
    const struct session_tls_conf *tls;  /* TLS with clients; NULL: no TLS */
    const struct throttle_plan *throttle;
    struct pipeline_template *pipeline; /* NULL: no handlers */
    const struct service_access_log *access_logs;
    unsigned n_access_logs;
    int64_t access_log_interval_ns; /* between lines of an open session; 0: only at its end */
};

#endif
