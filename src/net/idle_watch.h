/*
 * net/idle_watch: a connected socket that nobody uses yet, watched for all that can happen to it:
 * its peer speaks or ends.
 *
 * Nothing is read, so that whoever takes the socket over finds it as it came.
 */
#ifndef NET_IDLE_WATCH_H
#define NET_IDLE_WATCH_H

#include <ev.h>

#include "base/must.h"
#include "net/netloop.h"
#include "net/sock.h"

struct idle_watch;

/* SOCK_SPOKE or SOCK_ENDED: on the loop, and again in each turn until the socket is taken off. */
typedef void idle_watch_event(struct idle_watch *s, enum sock_peek what);

struct idle_watch {
    struct ev_io io;
    struct netloop *net;
    idle_watch_event *event;
    int fd; /* -1: none */
};

/*
 * idle_watch_init(s, net, event):
 * Prepare ${s}, which has no socket.
 *
 * Thread: loop of ${net}
 */
void idle_watch_init(struct idle_watch *s, struct netloop *net, idle_watch_event *event);

/*
 * idle_watch_watch(s, fd):
 * Watch ${fd} from now on.
 *
 * Thread: loop of ${s}
 * Owns:   ${s} has ${fd}
 */
void idle_watch_watch(struct idle_watch *s, int fd);

/*
 * idle_watch_rest(s):
 * Keep the socket, but tell of nothing any more.
 *
 * Thread: loop of ${s}
 */
void idle_watch_rest(struct idle_watch *s);

/*
 * idle_watch_peek(s):
 * sock_peek() of the socket.
 *
 * Thread: loop of ${s}
 */
enum sock_peek idle_watch_peek(const struct idle_watch *s);

/*
 * idle_watch_take(s) / idle_watch_close(s):
 * Give the socket away; close it, without a reset unless it has something to read. Without one: -1;
 * nothing happens.
 *
 * Thread: loop of ${s}
 * Owns:   the caller of idle_watch_take() owns the descriptor
 */
int idle_watch_take(struct idle_watch *s);
void idle_watch_close(struct idle_watch *s);

#endif
