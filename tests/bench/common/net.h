/*
 * net: the few socket calls all bench programs share. IPv4, non-blocking, TCP_NODELAY.
 * Failures are fatal (see die.h), except where a function says otherwise.
 */
#ifndef BENCH_NET_H
#define BENCH_NET_H

#include <netinet/in.h>
#include <stdint.h>

enum { NET_BACKLOG = 4096 };

/*
 * net_raise_nofile():
 * Raise the soft limit of descriptors to the hard one and return it: no descriptor is ever higher.
 */
int net_raise_nofile(void);

/*
 * net_parse(address, port):
 * The socket address of a dotted quad and a decimal port.
 */
struct sockaddr_in net_parse(const char *address, const char *port);

/*
 * net_parse_pair(pair):
 * The socket address of "ADDRESS:PORT".
 */
struct sockaddr_in net_parse_pair(const char *pair);

/*
 * net_listen(address):
 * A listening descriptor. TCP_NODELAY is set here once and inherited by what is accepted.
 */
int net_listen(const struct sockaddr_in *address);

/*
 * net_accept(listener):
 * The next accepted descriptor, or -1 when there is none at the moment.
 */
int net_accept(int listener);

/*
 * net_connect(address):
 * A descriptor that is connecting. Nothing waits for the end of it: until then send gives EAGAIN,
 * as it does on a socket that is full, and a failure is what the next recv or send returns. So
 * "connecting" needs no state of its own in any of these programs.
 */
int net_connect(const struct sockaddr_in *address);

/*
 * net_reset(fd):
 * Close ${fd} by RST: queued bytes are thrown away and no TIME_WAIT stays behind.
 */
void net_reset(int fd);

/*
 * net_watch(epfd, op, fd, events):
 * epoll_ctl with the descriptor itself as the event's data.
 */
void net_watch(int epfd, int op, int fd, uint32_t events);

#endif
