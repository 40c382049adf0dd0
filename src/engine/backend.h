/*
 * engine/backend: the loop's epoll instance and its repair.
 *
 * note: trouble. A poll is bad if epoll_wait fails, or returns too early for the `threshold`th time
 * in a row. libev then gets a new epoll instance, and keeps its watchers, timers and pending
 * events. If polls stay bad, the loop is paced: before each poll it waits up to BACKEND_PACE_NS for
 * its wake-up descriptor alone, so tasks and timers go on. Every BACKEND_CURE_NS it rebuilds again.
 */
#ifndef ENGINE_BACKEND_H
#define ENGINE_BACKEND_H

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/must.h"
#include "engine/backend_memory.h"

#define BACKEND_PACE_NS (1 * NS_PER_MS)
#define BACKEND_CURE_NS (1 * NS_PER_S)

enum backend_poll {
    BACKEND_GOOD,    /* returned events, woke for tasks, or lasted its full time */
    BACKEND_NEUTRAL, /* did not block, ended by a signal, or ended early but something ran */
    BACKEND_EARLY,   /* ended early, and nothing ran */
    BACKEND_FAILED
};

struct backend {
    struct ev_loop *ev;
    struct backend_memory memory;
    const char *name;
    int epoll_fd;       /* of `ev`, for backend_forget(); -1: not known */
    int nudge_fd;       /* eventfd the loop watches: a write ends a poll */
    unsigned threshold; /* rebuild after so many BACKEND_EARLY polls in a row; 0: ignore them */
    unsigned early;
    int error;             /* errno of the last poll; 0: success */
    int64_t rebuilt_at_ns; /* last rebuild attempt; 0: never */
    int64_t bad_at_ns;
    bool in_trouble; /* a rebuild was tried; cleared after BACKEND_CURE_NS without a bad poll */
    bool paced;      /* see note: trouble */
    bool fresh;      /* new instance, watchers not yet registered: do not block */
    bool blocking;
};

/*
 * backend_open(b, name, nudge_fd, threshold):
 * Create a libev loop on epoll. ${name} and ${nudge_fd} must outlive ${b}.
 *
 * Errors: 0; -ENOMEM; -EMFILE, -ENFILE
 */
int backend_open(struct backend *b, const char *name, int nudge_fd, unsigned threshold) NODISCARD;

/* backend_close(b): destroy the libev loop. Thread: any, while the loop has no thread */
void backend_close(struct backend *b);

/*
 * backend_poll(b, may_block):
 * Run libev once, blocking only if ${may_block}. Sets b->error to the errno of epoll_wait.
 *
 * Thread: loop
 */
void backend_poll(struct backend *b, bool may_block);

/*
 * backend_judge(b, poll, cause):
 * Act on ${poll} (note: trouble); ${cause} is for the log. True: the epoll instance was rebuilt.
 *
 * Thread: loop
 */
bool backend_judge(struct backend *b, enum backend_poll poll, const char *cause);

/*
 * backend_forget(b, fd):
 * Remove ${fd} from the epoll instance; without memory libev does so at its next event. libev hides
 * the instance's descriptor, but an ev_embed watcher of another loop watches it.
 *
 * Thread: loop
 */
void backend_forget(struct backend *b, int fd);

/*
 * backend_rebuild(b):
 * Replace the epoll instance; the next poll registers all watchers in it.
 *
 * Thread: loop
 * Errors: 0; -EMFILE, -ENFILE, -ENOMEM (the old instance stays)
 * Source: Netty NioEventLoop.rebuildSelector(); libev ev_loop_fork()
 */
int backend_rebuild(struct backend *b) NODISCARD;

#endif
