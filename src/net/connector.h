/*
 * net/connector: connects to a server that may have several addresses.
 *
 * Tries the addresses in order under one deadline, each with an equal share of the remaining time;
 * the first to answer wins. Embedded in the session, so connecting does not allocate.
 *
 * note: happy eyeballs. With both IPv4 and IPv6 addresses, the families alternate, starting with
 * the family of the first address. The next attempt begins after conf->attempt_delay_ns, or when
 * one fails. So a broken family costs a delay and not a share of the deadline. At most two attempts
 * run at a time, one per family. A third starts only when the older one's share of the time is
 * over, so that a distant server is not given up for being slow. Without a descriptor for the
 * second attempt, the first goes on alone.
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

struct connector;

/*
 * Called once, on the loop, never inside connector_start(). ${fd} is connected and belongs to the
 * callee, or -1 with ${error}: -ETIMEDOUT at the deadline, else that of the last address,
 * preferring those with a route. May restart the connector.
 */
typedef void connector_done(struct connector *c, int fd, int error);

struct connector_conf {
    struct sock_connect_conf sock;
    int64_t
        /* note: happy eyeballs; 0: one at a time, in order */
        attempt_delay_ns;
};

/*
 *   FREE --socket, connect--> CONNECTING --answer--> the outcome, or FREE
 *     \--unix: backlog full--> AGAIN --10 ms, connect--> CONNECTING
 */
struct connector_attempt {
    struct ev_io io;
    struct connector *connector;
    const struct address *address; /* NULL: FREE */
    int fd;                        /* -1: FREE or AGAIN */
    int64_t until_ns;              /* then an attempt at a waiting address may replace it */
};

struct connector {
    struct connector_attempt attempts[CONNECTOR_ATTEMPTS];
    struct timer timer; /* next event, see connector_arm() */
    struct netloop *net;
    connector_done *done;
    const struct connector_conf *conf;
    const struct address *addresses;
    unsigned n_addresses;
    unsigned begun; /* addresses tried */
    unsigned width; /* parallel attempts allowed */
    bool mixed;     /* families alternate */
    bool borrowed;  /* descriptor reserved for a second attempt */
    int64_t deadline_at_ns;
    int64_t next_at_ns; /* start of the next attempt */
    int error;          /* of the last failed address; errors of this host do not replace others */
    unsigned connected; /* on success: index of the address */
};

/*
 * connector_init(c, net, done):
 * Initialize ${c}, idle.
 *
 * Thread: loop of ${net}
 */
void connector_init(struct connector *c, struct netloop *net, connector_done *done);

/*
 * connector_start(c, addresses, n, timeout_ns, conf):
 * Connect to one of the ${n} > 0 addresses.
 *
 * Thread: loop of ${c}
 * Owns:   ${addresses} and ${conf} are borrowed until done()
 * Units:  ns, for all addresses together
 * Errors: reported by done()
 * Source: RFC 8305, sections 4 and 5
 */
void connector_start(struct connector *c, const struct address *addresses, unsigned n,
                     int64_t timeout_ns, const struct connector_conf *conf);

/*
 * connector_cancel(c):
 * Abort without calling done(). A server that has accepted already gets a reset: end of file would
 * look like a client with nothing to send. Does nothing when idle.
 *
 * Thread: loop of ${c}
 */
void connector_cancel(struct connector *c);

#endif
