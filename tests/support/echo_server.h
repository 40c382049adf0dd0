/*
 * support/echo_server: a server behind a proxy under test that has nothing in common with the code
 * under test: one thread, poll(2), and of each connection it reads only when it has sent back what
 * it read before.
 */
#ifndef SUPPORT_ECHO_SERVER_H
#define SUPPORT_ECHO_SERVER_H

#include "net/address.h"

struct echo_server;

/* More connections at a time than any test has. */
#define ECHO_SERVER_PEERS 256

/*
 * echo_server_open(out, a):
 * Serve on a free loopback port, ${a}.
 *
 * Thread: the test's
 * Owns:   the caller owns ${out}, until echo_server_close()
 * Errors: none (the process aborts)
 */
void echo_server_open(struct echo_server **out, struct address *a);

/*
 * echo_server_close(s):
 * Stop serving when every connection has been closed by its client.
 *
 * Thread: the test's
 * Errors: none (the process aborts)
 */
void echo_server_close(struct echo_server *s);

#endif
