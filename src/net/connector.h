/*
 * net/connector: getting one connection to a server that may have several addresses.
 *
 * The addresses are tried in order under one deadline, each with an equal share of the time that is
 * left; the first that answers wins. Embedded in the session that wants the connection, so that
 * connecting allocates nothing.
 *
 * note: happy eyeballs. When the addresses are of both IPv4 and IPv6, the families take turns,
 *             beginning with that of
 * the first, and an address is not waited for before the next is tried: that begins after
 * conf->attempt_delay_ns without an answer, or when an attempt has failed. A family that leads
 * nowhere then costs a delay and not a share of the deadline. Two attempts are under way at most,
 * since that is one for each family; the older makes room for a third only when its share is over,
 * so that a server that is far away is not given up for being slower than the delay. When there is
 * no descriptor for the second the first goes on alone.
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
 * The outcome, once, on the loop and never inside connector_start(): ${fd} is connected and the
 * callee's, or ${error} is why the last address failed that there was a way to (-ETIMEDOUT: the
 * deadline) and ${fd} is -1. The connector may be started again from here.
 */
typedef void connector_done(struct connector *c, int fd, int error);

struct connector_conf {
    struct sock_connect_conf sock;
    int64_t
        /* see note: happy eyeballs; 0: one address after the other, as they come */
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
    int64_t until_ns;              /* its share of the time; then it goes if another waits */
};

struct connector {
    struct connector_attempt attempts[CONNECTOR_ATTEMPTS];
    struct timer timer; /* the next thing that has an instant, see connector_arm() */
    struct netloop *net;
    connector_done *done;
    const struct connector_conf *conf;
    const struct address *addresses;
    unsigned n_addresses;
    unsigned begun; /* how many addresses have been */
    unsigned width; /* attempts at a time */
    bool mixed;     /* the families take turns */
    bool borrowed;  /* a descriptor for the attempt beside the first; see note: happy eyeballs */
    int64_t deadline_at_ns;
    int64_t next_at_ns; /* when the next address is tried, if there is room */
    int error;          /* of the last address that failed, if there was a way to it */
    unsigned connected; /* with an outcome that is no error: which of `addresses` answered */
};

/*
 * connector_init(c, net, done):
 * Prepare ${c}, idle.
 *
 * Thread: loop of ${net}
 */
void connector_init(struct connector *c, struct netloop *net, connector_done *done);

/*
 * connector_start(c, addresses, n, timeout_ns, conf):
 * Try the ${n} > 0 addresses.
 *
 * Thread: loop of ${c}
 * Owns:   ${addresses} and ${conf} are borrowed until the outcome
 * Units:  ns for all addresses together
 * Errors: none; every outcome goes to done()
 * Source: RFC 8305, sections 4 and 5
 */
void connector_start(struct connector *c, const struct address *addresses, unsigned n,
                     int64_t timeout_ns, const struct connector_conf *conf);

/*
 * connector_cancel(c):
 * Give up; done() is not called. A server that had the connection already, before we heard of it,
 * gets a reset: an end of file would be that of a client who had nothing to say. Nothing happens if
 * ${c} is idle.
 *
 * Thread: loop of ${c}
 */
void connector_cancel(struct connector *c);

#endif
