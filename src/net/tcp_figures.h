/*
 * net/tcp_figures: what the kernel has measured of a TCP connection.
 */
#ifndef NET_TCP_FIGURES_H
#define NET_TCP_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

struct tcp_figures {
    uint64_t rtt_us; /* smoothed round-trip time; 0: not measured, as of a unix socket */
    uint64_t rtt_var_us;
    uint64_t retransmits;   /* segments that were sent again */
    uint64_t delivery_rate; /* bytes per second that the peer last received; 0: not measured */
};

/*
 * tcp_figures_read(out, fd):
 * Read the figures of ${fd}; false: it is not a TCP connection. One system call.
 *
 * Source: tcp(7), TCP_INFO
 */
bool tcp_figures_read(struct tcp_figures *out, int fd);

#endif
