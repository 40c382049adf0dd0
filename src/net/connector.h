/*
 * net/connector: getting one connection to a server that may have several addresses.
 *
 * The addresses are tried in order under one deadline, each with an equal share of the time that is left; the first
 * that answers wins. Embedded in the session that
 * wants the connection, so that connecting allocates nothing.
 */
#ifndef NET_CONNECTOR_H
#define NET_CONNECTOR_H

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "engine/schedule.h"
#include "net/address.h"
#include "net/netloop.h"

struct connector;

/*
 * The outcome, once, on the loop and never inside connector_start(): ${fd} is connected and the callee's, or
 * ${error} is why the last address failed that there was a way to (-ETIMEDOUT: the deadline) and ${fd} is -1. The
 * connector may be started again from here.
 */
typedef void connector_done(struct connector *c, int fd, int error);

struct connector {
    struct ev_io io;
    struct timed timer; /* the deadline, or the next try at a full unix backlog */
    struct netloop *net;
    connector_done *done;
    const struct address *addresses;
    unsigned n_addresses;
    unsigned at; /* the address being tried */
    int64_t deadline_at_ns;
    int64_t address_until_ns; /* this address' share of the time */
    bool unseen;              /* sock_connect_unseen(); set before connector_start() */
    int fd;                   /* -1: not connecting */
    int error;                /* of the last address that failed, if there was a way to it */
};

/*
 * connector_init(c, net, done):
 * Prepare ${c}, idle.
 *
 * Thread: loop of ${net}
 * Errors: none
 */
void connector_init(struct connector *c, struct netloop *net, connector_done *done);

/*
 * connector_start(c, addresses, n, timeout_ns):
 * Try the ${n} > 0 addresses.
 *
 * Thread: loop of ${c}
 * Owns:   ${addresses} is borrowed until the outcome
 * Units:  ns for all addresses together
 * Errors: none; every outcome goes to done()
 */
void connector_start(struct connector *c, const struct address *addresses, unsigned n,
                     int64_t timeout_ns);

/*
 * connector_cancel(c):
 * Give up; done() is not called. Nothing happens if ${c} is idle.
 *
 * Thread: loop of ${c}
 * Errors: none
 */
void connector_cancel(struct connector *c);

#endif
