/*
 * net/connector: connects to a server with one or more addresses.
 *
 * It tries the addresses in order under one deadline, each with an equal share of the remaining
 * time; the first that answers wins.
 *
 * note: happy eyeballs. With IPv4 and IPv6 addresses the families alternate, the first address's
 * family first. The next attempt begins after conf->attempt_delay_ns, or when one fails: a broken
 * family costs only a delay. At most two attempts run at once; a third waits until the older
 * attempt's share of the time ends, and replaces that attempt.
 */
#ifndef NET_CONNECTOR_H
#define NET_CONNECTOR_H

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "engine/timer_heap.h"
#include "net/address.h"
#include "net/netloop.h"
#include "net/sock.h"

#define CONNECTOR_ATTEMPTS 2

struct arena;
struct connector;

/*
 * Called once, on the loop, never inside connector_start(). The callee owns the connected ${fd}. On
 * failure ${fd} is -1, and ${error} is -ETIMEDOUT (deadline) or c->error. May restart ${c}.
 */
typedef void connector_done(struct connector *c, int fd, int error);

/*
 * Called once for each address that was tried, with its outcome; -ECANCELED: given up. The one that
 * is connected comes last.
 */
typedef void connector_tried(struct connector *c, const struct address *a, int error);

struct connector_conf {
    struct arena *memory; /* holds this struct; a running connector has a reference; NULL: static */
    struct sock_connect_conf sock;
    int64_t attempt_delay_ns; /* 0: one attempt at a time */
};

/*
 * One attempt, at one address:
 *
 *   FREE --socket, connect--> CONNECTING --answer--> the outcome, or FREE
 *     \--unix: backlog full--> AGAIN --10 ms, connect--> CONNECTING
 */
struct connector_attempt {
    struct ev_io io;
    struct connector *connector;
    const struct address *address; /* NULL: FREE */
    int fd;                        /* -1: FREE or AGAIN */
    int64_t began_at_ns;
    int64_t share_ns; /* of the time */
};

struct connector {
    struct connector_attempt attempts[CONNECTOR_ATTEMPTS];
    struct timer timer; /* see connector_arm() */
    struct netloop *net;
    connector_done *done;
    connector_tried *tried;            /* NULL, or set after connector_init() */
    const struct address *client;      /* as `tried`; see sock_connect_as() */
    const struct connector_conf *conf; /* NULL: idle */
    const struct address *addresses;
    unsigned n_addresses;
    unsigned begun; /* addresses tried so far */
    unsigned width; /* parallel attempts allowed */
    bool mixed;
    bool borrowed; /* a descriptor is reserved for the second attempt */
    int64_t began_at_ns;
    int64_t timeout_ns;
    int64_t next_at_ns; /* when the next attempt may begin */
    int error; /* last error; a local one (sock_error_is_ours()) counts only as the first */
    unsigned connected; /* on success: index into addresses */
};

/* connector_init(c, net, done): initialize an idle connector. Thread: loop */
void connector_init(struct connector *c, struct netloop *net, connector_done *done);

/*
 * connector_start(c, addresses, n, timeout_ns, conf):
 * Connect to one of ${n} > 0 addresses.
 *
 * Thread: loop
 * Owns:   ${addresses} must live until done() or connector_cancel(), ${conf} too unless
 *         conf->memory holds it
 * Units:  ${timeout_ns} for all addresses together
 * Source: RFC 8305, sections 4 and 5
 */
void connector_start(struct connector *c, const struct address *addresses, unsigned n,
                     int64_t timeout_ns, const struct connector_conf *conf);

/*
 * connector_cancel(c):
 * Abort without done(). A server that has accepted gets a reset: end of file would look like a
 * client that sends nothing. No-op when idle.
 *
 * Thread: loop
 */
void connector_cancel(struct connector *c);

#endif
