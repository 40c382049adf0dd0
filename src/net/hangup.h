/*
 * net/hangup: notices resets of sockets that are not read.
 *
 * libev reports EPOLLERR and EPOLLHUP only to watchers of EV_READ or EV_WRITE; a paused channel has
 * neither. So each loop has a second epoll instance for paused sockets (epoll(7) always reports
 * both), whose descriptor libev watches for EV_READ. EPOLLRDHUP is not requested: a half-closed
 * peer may still wait for an answer.
 *
 * note: settle time. Most pauses are short: a socket is registered only after one to two
 * HANGUP_SETTLE_NS, in the lists `just_paused`, then `still_paused`.
 *
 * note: polled. A socket is polled every HANGUP_PROBE_NS when epoll_ctl(2) refused it, or after
 * EPOLLHUP without an error, as when both halves have ended: epoll would report that without end,
 * and a reset may still follow.
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

/* EPOLLERR, or EPOLLHUP before it, at most once each per hangup_listen(). On the loop. */
typedef void hangup_event(struct hangup_watch *w);

struct hangup_watch {
    struct list link; /* in a list of struct hangup, while listening */
    hangup_event *event;
    int fd;
    bool registered;
    bool hung_up; /* EPOLLHUP is reported */
};

struct hangup {
    struct loop *loop;
    struct ev_io io;
    int fd;                  /* epoll instance; -1: none */
    struct list just_paused; /* see note: settle time; as the next */
    struct list still_paused;
    struct list registered;
    struct list polled;     /* see note: polled; as the next */
    struct list to_poll;    /* still to poll in this round */
    struct list reported;   /* EPOLLERR, in this pause; some are still registered */
    struct timer timer;     /* runs unless all are registered or reported */
    int64_t timer_at_ns;    /* of the timer, unless idle */
    int64_t register_at_ns; /* when `still_paused` is registered */
    int64_t probe_at_ns;    /* next round, and next try to watch the epoll instance */
    bool unwatched;         /* libev could not watch the epoll instance */
    bool logged;            /* epoll_ctl(2)'s refusal */
};

/*
 * hangup_open(h, loop) / hangup_close(h):
 * Create the epoll instance of ${loop}; close it after the loop has ended.
 *
 * Thread: any
 * Errors: 0; -EMFILE, -ENFILE, -ENOMEM
 */
int hangup_open(struct hangup *h, struct loop *loop) NODISCARD;
void hangup_close(struct hangup *h);

/*
 * hangup_watch_init(w, event):
 * Initialize ${w}, not listening.
 *
 * Thread: owner of ${w}
 */
static inline void hangup_watch_init(struct hangup_watch *w, hangup_event *event)
{
    list_init(&w->link);
    w->event = event;
    w->registered = false;
    w->hung_up = false;
}

/*
 * hangup_listen(h, w, fd) / hangup_leave(h, w):
 * Report a reset of ${fd}; stop, before closing ${fd}. Idempotent.
 *
 * Thread: loop
 * Owns:   ${w} and ${fd} are borrowed until hangup_leave()
 */
void hangup_listen(struct hangup *h, struct hangup_watch *w, int fd);
void hangup_leave(struct hangup *h, struct hangup_watch *w);

#endif
