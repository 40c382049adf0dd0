/*
 * net/sentry: a connected socket that nobody uses yet, watched for all that can happen to it: its peer speaks or ends.
 *
 * Nothing is read, so that whoever takes the socket over finds it as it came.
 */
#ifndef NET_SENTRY_H
#define NET_SENTRY_H

#include <ev.h>

#include "base/must.h"
#include "net/netloop.h"
#include "net/sock.h"

struct sentry;

/* SOCK_SPOKE or SOCK_ENDED: on the loop, and again in each turn until the socket is taken off. */
typedef void sentry_event(struct sentry *s, enum sock_peek what);

struct sentry {
    struct ev_io io;
    struct netloop *net;
    sentry_event *event;
    int fd; /* -1: none */
};

/*
 * sentry_init(s, net, event):
 * Prepare ${s}, which has no socket.
 *
 * Thread: loop of ${net}
 * Errors: none
 */
void sentry_init(struct sentry *s, struct netloop *net, sentry_event *event);

/*
 * sentry_watch(s, fd):
 * Watch ${fd} from now on.
 *
 * Thread: loop of ${s}
 * Owns:   ${s} has ${fd}
 * Errors: none
 */
void sentry_watch(struct sentry *s, int fd);

/*
 * sentry_rest(s):
 * Keep the socket, but tell of nothing any more.
 *
 * Thread: loop of ${s}
 * Errors: none
 */
void sentry_rest(struct sentry *s);

/*
 * sentry_peek(s):
 * sock_peek() of the socket.
 *
 * Thread: loop of ${s}
 * Errors: none
 */
enum sock_peek sentry_peek(const struct sentry *s);

/*
 * sentry_take(s) / sentry_close(s):
 * Give the socket away; close it, without a reset unless it has something to read. Without one: -1; nothing happens.
 *
 * Thread: loop of ${s}
 * Owns:   the caller of sentry_take() owns the descriptor
 * Errors: none
 */
int sentry_take(struct sentry *s);
void sentry_close(struct sentry *s);

#endif
