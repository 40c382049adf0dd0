/*
 * net/hangup: notice resets of sockets that are not read: a second epoll instance for each loop.
 *
 * libev reports EPOLLERR and EPOLLHUP only to a watcher of EV_READ or EV_WRITE, and a paused
 * channel has neither. epoll reports both for a descriptor that was registered for no event at all.
 * So paused sockets are registered in an epoll instance of their own, whose descriptor libev
 * watches for EV_READ.
 *
 * note: settle time. Most pauses are short: a connect on a fast network, a receiver that is slow
 * for a moment. A socket is registered when it has been paused for HANGUP_SETTLE_NS to twice that,
 * so that short pauses cost no system call. Until the next run of the timer it is on the list
 * `fresh`, then on the list `settling`.
 *
 * EPOLLRDHUP is not asked for: a peer that has ended its half may still wait for an answer.
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

/* How often a socket that cannot be registered is polled. */
#define HANGUP_PROBE_NS (1 * NS_PER_S)

struct hangup_watch;

/* EPOLLERR or EPOLLHUP, at most once for each hangup_listen(). On the loop. */
typedef void hangup_event(struct hangup_watch *w);

struct hangup_watch {
    struct list link; /* on one of the lists of struct hangup, while it listens */
    hangup_event *event;
    int fd;
    bool registered; /* in the epoll instance */
};

struct hangup {
    struct loop *loop;
    struct ev_io io;   /* of the epoll instance */
    int fd;            /* of the epoll instance; -1: none */
    struct list fresh; /* see note: settle time; so the next */
    struct list settling;
    struct list registered;
    struct list refused;  /* by epoll_ctl(2): polled each HANGUP_PROBE_NS */
    struct list reported; /* nothing more to tell in this pause; some are registered */
    struct timer timer;   /* runs while `fresh`, `settling` or `refused` has an entry */
    bool timer_settles;   /* it is for the first two */
    int64_t probe_at_ns;  /* when `refused` is polled next */
    bool logged;          /* that epoll_ctl(2) has refused a socket */
};

/*
 * hangup_open(h, loop) / hangup_close(h):
 * Open the epoll instance for ${loop}; close it.
 *
 * Thread: any; the loop has ended when it is closed
 * Errors: 0; -EMFILE, -ENFILE, -ENOMEM
 */
int hangup_open(struct hangup *h, struct loop *loop) NODISCARD;
void hangup_close(struct hangup *h);

/*
 * hangup_watch_init(w, event):
 * Prepare ${w}, which watches nothing.
 *
 * Thread: owner of ${w}
 */
static inline void hangup_watch_init(struct hangup_watch *w, hangup_event *event)
{
    list_init(&w->link);
    w->event = event;
    w->registered = false;
}

/*
 * hangup_listen(h, w, fd) / hangup_leave(h, w):
 * Report a reset of ${fd}; stop that, before ${fd} is closed. A second call changes nothing.
 *
 * Thread: loop
 * Owns:   ${w} and ${fd} are borrowed until hangup_leave()
 */
void hangup_listen(struct hangup *h, struct hangup_watch *w, int fd);
void hangup_leave(struct hangup *h, struct hangup_watch *w);

#endif
