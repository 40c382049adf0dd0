/*
 * net/hangup: notices resets, and on request the end of file, of sockets that are not read.
 *
 * libev reports EPOLLERR and EPOLLHUP only to watchers of EV_READ or EV_WRITE, and a paused channel
 * has none. So each loop has a second epoll instance for paused sockets, and libev watches that
 * instance for EV_READ. epoll(7) reports EPOLLERR and EPOLLHUP unasked, EPOLLRDHUP if asked.
 *
 * note: settle time. Most pauses are short: a socket is registered only after one to two
 * HANGUP_SETTLE_NS, which it spends in the lists `just_paused` and `still_paused`.
 *
 * note: polled. A socket is polled every HANGUP_PROBE_NS if epoll_ctl(2) refused it, or after
 * EPOLLHUP without an error, as when both halves have ended: a reset may still follow.
 */
#ifndef NET_HANGUP_H
#define NET_HANGUP_H

#include <ev.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/must.h"
#include "engine/loop.h"

/* See note: settle time. */
#define HANGUP_SETTLE_NS (20 * NS_PER_MS)

/* See note: polled. */
#define HANGUP_PROBE_NS (1 * NS_PER_S)

/* Sockets registered or polled per run of the timer; the rest follow next turn. */
#define HANGUP_RUN 256

struct hangup_watch;

/*
 * Called on the loop for EPOLLHUP and EPOLLERR, at most once each after hangup_listen(), and for
 * EPOLLRDHUP once after hangup_listen_end(). `hung_up` tells EPOLLRDHUP alone from the others.
 */
typedef void hangup_event(struct hangup_watch *w);

struct hangup_watch {
    struct list link; /* in a list of struct hangup after hangup_listen() */
    hangup_event *event;
    int fd;
    bool registered;
    bool hung_up;   /* `event` was called for EPOLLHUP or EPOLLERR */
    bool wants_end; /* report EPOLLRDHUP too */
};

struct hangup {
    struct loop *loop;
    struct ev_io io;
    int fd; /* epoll instance; -1: none */
    struct list just_paused;
    struct list still_paused;
    struct list registered;
    struct list polled;
    struct list to_poll;  /* sockets still to poll in this round */
    struct list reported; /* sockets whose EPOLLERR was reported; some are still registered */
    struct timer timer;   /* needed while sockets are to be registered or polled, or `unwatched` */
    int64_t timer_at_ns;
    int64_t register_at_ns; /* when to register the sockets in `still_paused` */
    int64_t probe_at_ns;    /* when the next round of polls begins */
    bool unwatched;
    bool logged; /* a refusal by epoll_ctl(2) was logged */
};

/*
 * hangup_open(h, loop) / hangup_close(h):
 * Create the epoll instance of ${loop} / close it after the loop has ended.
 *
 * Errors: 0; -EMFILE, -ENFILE, -ENOMEM
 */
int hangup_open(struct hangup *h, struct loop *loop) NODISCARD;
void hangup_close(struct hangup *h);

/* hangup_watch_init(w, event): initialize ${w} with the callback ${event}. Thread: owner */
static inline void hangup_watch_init(struct hangup_watch *w, hangup_event *event)
{
    list_init(&w->link);
    w->event = event;
    w->registered = false;
    w->hung_up = false;
    w->wants_end = false;
}

/*
 * hangup_listen(h, w, fd) / hangup_leave(h, w):
 * Report EPOLLERR and EPOLLHUP of ${fd} / stop reporting; call this before closing ${fd}. Both are
 * idempotent.
 *
 * Thread: loop
 * Owns:   ${w} and ${fd} must live until hangup_leave()
 */
void hangup_listen(struct hangup *h, struct hangup_watch *w, int fd);
void hangup_leave(struct hangup *h, struct hangup_watch *w);

/*
 * hangup_listen_end(h, w):
 * Also report EPOLLRDHUP, once, even if the peer has ended its stream before. ${w} is listened to.
 *
 * Thread: loop
 */
void hangup_listen_end(struct hangup *h, struct hangup_watch *w);

#endif
