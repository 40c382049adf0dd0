/*
 * engine/backend: the loop's epoll instance and its repair.
 *
 * note: trouble. If epoll_wait fails, or returns early again and again, libev gets a new epoll
 * instance; watchers, timers and pending events stay (level triggering reports readiness again). If
 * that does not help, the loop is paced: before each poll it waits BACKEND_PACE_NS on its wake-up
 * descriptor alone, so tasks and timers go on. It rebuilds each BACKEND_CURE_NS. If a descriptor
 * cannot be watched, its watcher gets EV_ERROR and the owner ends the connection.
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

/* Verdict on a turn's poll. */
enum backend_poll {
    BACKEND_GOOD,    /* brought events, or lasted its full time */
    BACKEND_NEUTRAL, /* did not block; or ended by a signal or a wake-up with tasks */
    BACKEND_EARLY,   /* ended before its time, without events */
    BACKEND_FAILED   /* epoll_wait failed */
};

struct backend {
    struct ev_loop *ev;
    const char *name;
    int nudge_fd;       /* watched eventfd: writing ends a poll */
    unsigned threshold; /* early polls in a row that trigger a rebuild; 0: never */
    unsigned early;
    int error;             /* of the last poll; 0: none */
    int64_t rebuilt_at_ns; /* last rebuild attempt; 0: never */
    int64_t bad_at_ns;
    bool in_trouble; /* until polls were good for BACKEND_CURE_NS */
    bool paced;      /* the rebuild did not help */
    bool fresh;      /* watchers not yet registered: must not block */
    bool blocking;
};

/*
 * backend_open(b, name, nudge_fd, threshold):
 * Create an epoll instance; borrows ${name} and ${nudge_fd}.
 *
 * Thread: any
 * Errors: 0; -ENOMEM; -EMFILE, -ENFILE
 */
int backend_open(struct backend *b, const char *name, int nudge_fd, unsigned threshold) NODISCARD;

/*
 * backend_close(b):
 * Close the instance.
 *
 * Thread: any, while the loop has no thread
 */
void backend_close(struct backend *b);

/*
 * backend_poll(b, may_block):
 * Run one pass of libev; b->error is the errno of epoll_wait, also EINTR.
 *
 * Thread: loop
 */
void backend_poll(struct backend *b, bool may_block);

/*
 * backend_judge(b, poll, cause):
 * Record a verdict and rebuild if needed (note: trouble), logging ${cause}; true if rebuilt.
 *
 * Thread: loop
 */
bool backend_judge(struct backend *b, enum backend_poll poll, const char *cause);

/*
 * backend_rebuild(b):
 * Replace the epoll instance before the next poll, unnoticed by watchers.
 *
 * Thread: loop
 * Errors: 0; -EMFILE, -ENFILE, -ENOMEM (the old one stays)
 * Source: Netty NioEventLoop.rebuildSelector(); libev ev_loop_fork()
 */
int backend_rebuild(struct backend *b) NODISCARD;

#endif
