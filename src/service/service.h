/*
 * service/service: what a listener offers to its clients: echo or proxy, with the settings of that
 * listener.
 *
 * A service makes sessions; a session does the rest. Immutable once built; sessions borrow it.
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
struct service_ops;
struct mirror_plan;
struct throttle_plan;

struct service {
    const struct service_ops *ops;
    const char *listener;                /* name, for logs */
    struct counters *counters;           /* the listener's, which change; NULL: nobody counts */
    struct admission *admission;         /* the listener's; NULL: every client is served */
    struct upstream *upstream;           /* proxy only */
    struct mirror_plan *mirror;          /* who gets a copy of what clients send; NULL: nobody */
    struct proxy_protocol_gate *proxies; /* that may name their clients; NULL: none */
    enum splice_mode splice;
    struct throttle_plan *throttle;           /* the listener's bandwidths; NULL: no limit */
    const struct pipeline_template *pipeline; /* the client's handlers; NULL: none */
    struct access_log *access_log;            /* NULL: none, and the next two mean nothing */
    const struct access_log_format *access_log_format;
    int64_t
        access_log_interval_ns; /* between lines of a connection that goes on; 0: only at its end */

    /*
     * Timeouts; 0: none. Read whenever a timer looks, but for max_lifetime: it is drawn at the
     * beginning.
     */
    int64_t idle_timeout_ns;          /* nothing moved, either way */
    int64_t client_idle_timeout_ns;   /* nothing came from the client */
    int64_t upstream_idle_timeout_ns; /* nothing came from the server */
    int64_t half_close_timeout_ns;    /* nothing moved, and one direction has ended */
    int64_t first_byte_timeout_ns;    /* the client never said anything */
    int64_t max_lifetime_ns;
    struct channel_linger_conf linger; /* how long an end may take */
    unsigned lifetime_jitter; /* percent of max_lifetime_ns by which it is shortened, at most */
};

#endif
