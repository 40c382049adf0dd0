/*
 * service/service: a listener's service (echo or proxy) and its settings.
 *
 * One per generation of a listener, immutable; a session uses it until session_carry_over().
 */
#ifndef SERVICE_SERVICE_H
#define SERVICE_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "net/channel.h"
#include "upstream/upstream.h"

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

/* A timeout of 0 is off. */
struct session_conf {
    enum splice_mode splice;
    int64_t idle_timeout_ns;        /* no bytes in either direction */
    int64_t client_idle_timeout_ns; /* no bytes from the client */
    int64_t half_close_timeout_ns;  /* no bytes, and one direction has ended */
    int64_t first_byte_timeout_ns;  /* no bytes from the client since the session's start */
    int64_t max_lifetime_ns;
    unsigned lifetime_jitter; /* shortens a lifetime by at most this percentage */
    struct channel_linger_conf linger;
};

struct service {
    const struct service_ops *ops;
    const struct session_conf *conf; /* of the generation */
    const char *listener;
    struct counters *counters;           /* NULL: not counted */
    struct admission *admission;         /* NULL: all clients are served */
    struct upstream *upstream;           /* proxy only; NULL: only routes choose one */
    struct session_routes *routes;       /* choose the upstream by a ClientHello; NULL: none */
    const struct mirror_plan *mirror;    /* NULL: none */
    struct proxy_protocol_gate *proxies; /* trusted senders of PROXY headers; NULL: none */
    const struct session_tls_conf *tls;  /* with clients; NULL: none */
    const struct throttle_plan *throttle;
    struct pipeline_template *pipeline; /* NULL: none */
    struct access_log *access_log;      /* NULL: none */
    const struct access_log_format *access_log_format;
    int64_t access_log_interval_ns; /* between lines of an open session; 0: none before its end */
};

#endif
