/*
 * engine/backend: the epoll instance under a loop, and what is done when it misbehaves.
 *
 * note: trouble. Three things can go wrong that no watcher hears of: epoll_wait fails; it returns
 * at once, again and again, with nothing to do; a descriptor cannot be watched any more. The cure
 * is the same for the first two: a new epoll instance in place of the old one, with every watcher,
 * timer and pending event as they were (level triggering reports again what was ready). If that
 * does not help, the loop is paced: it waits BACKEND_PACE_NS before each poll, on its wake-up
 * descriptor alone, so that tasks and timers go on and the processor stays free; and it tries the
 * cure again each BACKEND_CURE_NS. The third is told to the watcher (EV_ERROR), whose owner ends
 * the connection.
 */
#ifndef ENGINE_BACKEND_H
#define ENGINE_BACKEND_H

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/must.h"

#define BACKEND_PACE_NS (1 * NS_PER_MS)
#define BACKEND_CURE_NS (1 * NS_PER_S)

/* What a turn says about its poll. */
enum backend_poll {
    BACKEND_GOOD,    /* it brought events, or lasted until its time was up */
    BACKEND_NEUTRAL, /* it was not to block, or a signal or a wake-up with tasks ended it */
    BACKEND_EARLY,   /* it ended before its time, with nothing */
    BACKEND_FAILED   /* epoll_wait reported an error */
};

struct backend {
    struct ev_loop *ev;
    const char *name;    /* of the loop */
    int nudge_fd;        /* an eventfd that the loop watches: writing to it ends a poll */
    unsigned threshold;  /* early polls in a row that are too many; 0: any number is fine */
    unsigned early;      /* in a row */
    int error;           /* errno of the last poll; 0: none */
    int64_t cured_at_ns; /* the last try to cure; 0: never */
    int64_t bad_at_ns;   /* when a poll was bad last */
    bool in_trouble;     /* until polls have been good for BACKEND_CURE_NS */
    bool paced;          /* it did not help */
    bool fresh;          /* watchers are still to be registered, so the next poll may not block */
    bool blocking;       /* the present poll may */
};

/*
 * backend_open(b, name, nudge_fd, threshold):
 * An epoll instance.
 *
 * Thread: any
 * Owns:   ${name} and ${nudge_fd} are borrowed
 * Errors: 0; -ENOMEM; -EMFILE, -ENFILE
 */
int backend_open(struct backend *b, const char *name, int nudge_fd, unsigned threshold) NODISCARD;

/*
 * backend_close(b):
 * Close it.
 *
 * Thread: any, when the loop has ended or was never started
 */
void backend_close(struct backend *b);

/*
 * backend_poll(b, may_block):
 * One pass of libev. ${b}->error tells if epoll_wait failed, EINTR included.
 *
 * Thread: loop
 */
void backend_poll(struct backend *b, bool may_block);

/*
 * backend_judge(b, poll, cause):
 * What the turn's poll brought, and what is suspected if it was not good. Rebuilds when that is
 * called for (see note: trouble). Returns whether it was rebuilt.
 *
 * Thread: loop
 * Owns:   nothing of ${cause}
 */
bool backend_judge(struct backend *b, enum backend_poll poll, const char *cause);

/*
 * backend_rebuild(b):
 * Replace the epoll instance before the next poll.
 *
 * Thread: loop
 * Errors: 0; -EMFILE, -ENFILE, -ENOMEM (no instance can be had; the old one stays)
 * Source: Netty NioEventLoop.rebuildSelector(); libev ev_loop_fork()
 */
int backend_rebuild(struct backend *b) NODISCARD;

#endif
