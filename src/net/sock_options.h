/*
 * net/sock_options: socket options of clients and servers.
 *
 * All zero: kernel defaults, one system call (note: inline). Accepted TCP sockets inherit the
 * listener's. Unix sockets have only a send buffer and inherit nothing.
 *
 * note: inline. SO_OOBINLINE keeps an urgent (MSG_OOB) byte in the stream, else the receiver misses
 * it (required by RFC 6093, section 6).
 */
#ifndef NET_SOCK_OPTIONS_H
#define NET_SOCK_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"

/* Kernel limits. */
#define SOCK_OPTIONS_KEEPALIVE_SECONDS 32767
#define SOCK_OPTIONS_KEEPALIVE_COUNT   127

struct sock_keepalive {
    unsigned idle_s;     /* silence before the first probe; 0: off */
    unsigned interval_s; /* 0: net.ipv4.tcp_keepalive_intvl */
    unsigned count;      /* 0: net.ipv4.tcp_keepalive_probes */
};

struct sock_options {
    struct sock_keepalive keepalive;
    int64_t user_timeout_ns; /* TCP_USER_TIMEOUT; 0: kernel retries */
    bool nodelay;
    unsigned send_buffer_bytes; /* 0: autotuning; so the next */
    unsigned receive_buffer_bytes;
};

/*
 * sock_options_set(fd, family, o):
 * Set the options of ${family}. Call before connect(2) or listen(2): the receive buffer sets the
 * window scale.
 *
 * Thread: owner of ${fd}
 * Errors: 0; -errno of setsockopt(2)
 * Source: tcp(7), socket(7); RFC 7323, section 2.2
 */
int sock_options_set(int fd, int family, const struct sock_options *o) NODISCARD;

/*
 * sock_options_set_accepted(fd, family, o):
 * Set what an accepted socket does not inherit; nothing for TCP. Ignores errors.
 *
 * Thread: owner of ${fd}
 */
void sock_options_set_accepted(int fd, int family, const struct sock_options *o);

#endif
