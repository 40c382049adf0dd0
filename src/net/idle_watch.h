/* net/idle_watch: watches a connection for input or close, without reading. */
#ifndef NET_IDLE_WATCH_H
#define NET_IDLE_WATCH_H

#include <ev.h>

#include "base/must.h"
#include "net/netloop.h"
#include "net/sock.h"

struct idle_watch;

/*
 * Called on the loop with SOCK_READABLE or SOCK_ENDED, in each turn until idle_watch_take(),
 * _close() or _rest().
 */
typedef void idle_watch_event(struct idle_watch *s, enum sock_peek what);

struct idle_watch {
    struct ev_io io;
    struct netloop *net;
    idle_watch_event *event;
    int fd; /* -1: none */
};

/* idle_watch_init(s, net, event): initialize ${s} without a socket. Thread: loop */
void idle_watch_init(struct idle_watch *s, struct netloop *net, idle_watch_event *event);

/*
 * idle_watch_watch(s, fd):
 * Begin to watch ${fd}.
 *
 * Thread: loop
 * Owns:   ${s} owns ${fd}
 */
void idle_watch_watch(struct idle_watch *s, int fd);

/*
 * idle_watch_rest(s) / idle_watch_peek(s):
 * Stop watching, but keep the socket / call sock_peek() for the socket.
 *
 * Thread: loop
 */
void idle_watch_rest(struct idle_watch *s);

enum sock_peek idle_watch_peek(const struct idle_watch *s);

/*
 * idle_watch_take(s) / idle_watch_close(s):
 * Give the socket to the caller (-1: none) / close it; the kernel sends a reset only if input is
 * unread.
 *
 * Thread: loop
 */
int idle_watch_take(struct idle_watch *s);
void idle_watch_close(struct idle_watch *s);

#endif
