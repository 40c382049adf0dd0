/*
 * support/listen_socket: a listening socket's configuration and address.
 *
 * Thread: the test's, unless it says otherwise
 */
#ifndef SUPPORT_LISTEN_SOCKET_H
#define SUPPORT_LISTEN_SOCKET_H

#include "net/sock.h"

struct listen_socket {
    const struct sock_listen_conf conf;
    struct address a;
};

extern struct listen_socket listen_socket;

void listen_socket_setup(void);

void listen_socket_teardown(void);

void listen_socket_expect_listen(int error);

void listen_socket_parse(const char *word);

#endif
