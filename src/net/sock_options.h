/*
 * net/sock_options: socket options of clients and servers.
 *
 * A zero field leaves the kernel's default. SO_OOBINLINE is always set (note: inline), but for
 * MPTCP, which has no urgent bytes. Accepted TCP sockets inherit the listener's options. Unix
 * sockets have only the send buffer, and do not inherit it.
 *
 * note: inline. SO_OOBINLINE keeps an urgent (MSG_OOB) byte in the stream, as RFC 6093, section 6,
 * requires; without it the byte would be lost.
 */
#ifndef NET_SOCK_OPTIONS_H
#define NET_SOCK_OPTIONS_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"

/* Kernel limits. Names: TCP_CA_NAME_MAX, IF_NAMESIZE. */
#define SOCK_OPTIONS_KEEPALIVE_SECONDS 32767
#define SOCK_OPTIONS_KEEPALIVE_COUNT   127
#define SOCK_OPTIONS_DSCP_MAX          63
#define SOCK_OPTIONS_MSS_MIN           88
#define SOCK_OPTIONS_MSS_MAX           32767
#define SOCK_OPTIONS_NAME_BYTES        16

/* Error of sock_options_open(), which no system call of a socket returns. */
#define SOCK_OPTIONS_NO_NAMESPACE EL2NSYNC

struct netns;

struct sock_keepalive {
    unsigned idle_s;     /* silence before the first probe; 0: off */
    unsigned interval_s; /* 0: net.ipv4.tcp_keepalive_intvl */
    unsigned count;      /* 0: net.ipv4.tcp_keepalive_probes */
};

/* Bit of sock_options.rows: they are known. */
#define SOCK_OPTIONS_INDEXED (UINT32_C(1) << 31)

struct sock_options {
    uint32_t rows; /* by sock_options_index(); 0: not yet */
    struct sock_keepalive keepalive;
    int64_t user_timeout_ns; /* TCP_USER_TIMEOUT; 0: kernel default */
    bool nodelay;
    bool nodelay_later;         /* by channel_nodelay(), not by sock_options_set() */
    unsigned send_buffer_bytes; /* 0: autotuning */
    unsigned receive_buffer_bytes;
    bool mptcp;       /* fixed when a socket is made */
    bool freebind;    /* of a listener; IP_FREEBIND: addresses that are absent */
    bool transparent; /* IP_TRANSPARENT, IPV6_TRANSPARENT: addresses of other hosts */
    unsigned mark;    /* SO_MARK */
    unsigned dscp;    /* IP_TOS, IPV6_TCLASS */
    unsigned mss_bytes;
    unsigned fastopen;       /* of a listener: clients whose SYN had data, not yet accepted */
    unsigned defer_accept_s; /* of a listener */
    char congestion[SOCK_OPTIONS_NAME_BYTES]; /* TCP_CONGESTION; empty: kernel default */
    char interface[SOCK_OPTIONS_NAME_BYTES];  /* SO_BINDTODEVICE; empty: any */
    const char *namespace;                    /* name or path of `netns`; NULL: none */
    struct netns *netns; /* network namespace of the socket; NULL: that of the process */
};

/*
 * sock_options_index(o):
 * Find which options are set, so that a socket costs nothing for the others. Call when ${o} does
 * not change any more; if not called, each socket looks at all.
 */
void sock_options_index(struct sock_options *o);

/*
 * sock_options_set(fd, family, o):
 * Set the options of ${family}. Call before connect(2) or listen(2): the receive buffer sets the
 * window scale.
 *
 * Thread: owner
 * Errors: 0; -errno of setsockopt(2)
 * Source: tcp(7), socket(7); RFC 7323, section 2.2
 */
int sock_options_set(int fd, int family, const struct sock_options *o) NODISCARD;

/* sock_options_protocol(o, family): return the protocol for socket(2). */
int sock_options_protocol(const struct sock_options *o, int family);

/*
 * sock_options_open(o, family):
 * Create a non-blocking socket in the network namespace and with the protocol of ${o}; set no
 * option.
 *
 * Owns:   the caller owns the descriptor
 * Errors: the descriptor; -errno of socket(2), or of setns(2) as -SOCK_OPTIONS_NO_NAMESPACE
 */
int sock_options_open(const struct sock_options *o, int family) NODISCARD;

/*
 * sock_options_probe(o, key):
 * Set all options on a TCP socket of its own, to learn what the kernel and the privileges of this
 * process refuse. On failure ${key} is the name in the configuration; NULL: no socket.
 *
 * Errors: 0; -errno of setsockopt(2), socket(2)
 */
int sock_options_probe(const struct sock_options *o, const char **key) NODISCARD;

/* sock_options_are_rare(o): has ${o} options that a kernel or its privileges may refuse? */
bool sock_options_are_rare(const struct sock_options *o);

/*
 * sock_options_capabilities(o):
 * Return the capabilities that setting ${o} needs, as bits 1 << CAP_NET_ADMIN and so on.
 *
 * Source: socket(7), SO_MARK, SO_BINDTODEVICE; Linux, tcp_set_congestion_control()
 */
unsigned sock_options_capabilities(const struct sock_options *o);

/* sock_options_same(a, b): do both set the same? */
bool sock_options_same(const struct sock_options *a, const struct sock_options *b);

/*
 * sock_options_change(fd, family, from, to):
 * Change the options of a listening ${fd} from ${from} (NULL: unknown) to ${to}, for clients that
 * connect later. A zero option returns to the kernel's default, but congestion and interface of an
 * unknown socket stay: a .socket unit may have set them. Ignores errors.
 *
 * Thread: owner of ${fd}
 * Source: socket(7); Linux, sk_setsockopt(), SO_BUF_LOCK (5.14: returns to autotuning)
 */
void sock_options_change(int fd, int family, const struct sock_options *from,
                         const struct sock_options *to);

/*
 * sock_options_set_accepted(fd, family, o):
 * Set the options that an accepted socket does not inherit (TCP: none, without MPTCP of the
 * listener). Ignores errors.
 *
 * Thread: owner
 */
void sock_options_set_accepted(int fd, int family, const struct sock_options *o);

#endif
