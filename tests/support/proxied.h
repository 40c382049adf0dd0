/*
 * support/proxied: sessions of a proxy, and its servers, which the test is.
 */
#ifndef SUPPORT_PROXIED_H
#define SUPPORT_PROXIED_H

#include "support/host.h"
#include "upstream/upstream.h"

#define PROXIED_SERVERS 3

struct proxied {
    struct host host;
    struct upstream *upstream;
    struct upstream_conf conf; /* may be changed before proxied_open(), as may `servers` */
    struct upstream_server_conf servers[PROXIED_SERVERS];
    struct address addresses[PROXIED_SERVERS];
    int fds[PROXIED_SERVERS]; /* listening, or bound so that connecting is refused; -1: none */
    int client, server;       /* of proxied_connect(), closed at the end; -1: none */
};

extern struct proxied proxied;

enum proxied_server {
    PROXIED_ANSWERS,
    PROXIED_REFUSES,
    PROXIED_UNKNOWN /* answers, but its name is not known yet */
};

/*
 * proxied_enter() / proxied_enter_with_server() / proxied_leave():
 * Checked fixtures: no servers yet, and proxied_open() is still to be called; one server, and all
 * is open; end all sessions, and see that no descriptor is left. The log is captured.
 *
 * Thread: the test's
 * Errors: the test fails
 */
void proxied_enter(void);
void proxied_enter_with_server(void);
void proxied_leave(void);

/*
 * proxied_add(i, behaviour) / proxied_open(n):
 * Server ${i}, called a, b or c; an upstream of the first ${n}, and a host of its sessions.
 *
 * Thread: the test's
 * Errors: the test fails
 */
void proxied_add(unsigned i, enum proxied_server behaviour);
void proxied_open(unsigned n);

/*
 * proxied_connect():
 * A client that server 0 has accepted, and through which a byte has come.
 *
 * Thread: the test's
 * Errors: the test fails
 */
void proxied_connect(void);

/*
 * proxied_expect_served_by(i) / proxied_expect_reset(reason):
 * A new client is served by server ${i}; is reset, and its session ends for ${reason}.
 *
 * Thread: the test's
 * Errors: the test fails
 */
void proxied_expect_served_by(unsigned i);
void proxied_expect_reset(enum session_reason reason);

/*
 * proxied_state(i):
 * Server ${i} as the upstream has it.
 *
 * Thread: the test's
 */
struct upstream_server *proxied_state(unsigned i);

#endif
