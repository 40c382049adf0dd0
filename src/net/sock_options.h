/*
 * net/sock_options: what can be chosen about a TCP connection, towards clients and servers alike.
 *
 * All zero is the kernel's default, and costs one system call, see note: inline. An accepted TCP
 * socket inherits the options of its listener, so that a client costs none. Unix sockets have a
 * send buffer only, and inherit nothing.
 *
 * note: inline. A byte that was sent as urgent (MSG_OOB) stays in its place in the stream, and is
 * passed on as any other. Otherwise the kernel takes it out, and the receiver gets one byte less.
 * RFC 6093, section 6: an application must set SO_OOBINLINE.
 */
#ifndef NET_SOCK_OPTIONS_H
#define NET_SOCK_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"

/* Probes on a connection that is silent; the limits are the kernel's. */
#define SOCK_OPTIONS_KEEPALIVE_SECONDS 32767
#define SOCK_OPTIONS_KEEPALIVE_COUNT   127

struct sock_keepalive {
    unsigned idle_s;     /* silence before the first probe; 0: no probes */
    unsigned interval_s; /* from one to the next; 0: net.ipv4.tcp_keepalive_intvl */
    unsigned count;      /* unanswered ones that end it; 0: net.ipv4.tcp_keepalive_probes */
};

struct sock_options {
    struct sock_keepalive keepalive;
    int64_t
        user_timeout_ns; /* how long sent bytes may stay unacknowledged; 0: the kernel's retries */
    bool nodelay;        /* do not hold back a short segment until the one before is acknowledged */
    unsigned send_buffer_bytes; /* 0: the kernel sizes it as the connection needs; so the next */
    unsigned receive_buffer_bytes;
};

/*
 * sock_options_set(fd, family, o):
 * Give a new socket ${o}, as far as its ${family} has them. The receive buffer decides which window
 * scale is offered, so this must come before connect(2) or listen(2).
 *
 * Thread: owner of ${fd}
 * Errors: 0; -errno of setsockopt(2)
 * Source: tcp(7), socket(7); RFC 7323, section 2.2, for the window scale
 */
int sock_options_set(int fd, int family, const struct sock_options *o) NODISCARD;

/*
 * sock_options_set_accepted(fd, family, o):
 * Give an accepted socket what it did not inherit from a listener that has ${o}: none for TCP. What
 * fails is left as it is.
 *
 * Thread: owner of ${fd}
 */
void sock_options_set_accepted(int fd, int family, const struct sock_options *o);

#endif
