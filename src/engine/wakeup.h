/*
 * engine/wakeup: ending a loop's sleep from another thread, with one system call a sleep at most.
 *
 * note: wake-up. A producer pushes its task and then looks whether the loop sleeps; the loop
 * publishes that it will sleep and then looks whether there are tasks. Each stores its own word and
 * then loads the other's, so all four accesses are sequentially consistent: at least one of the two
 * sees the other, and no task waits for a sleeping loop. The exchange lets only one of many
 * producers pay for the system call.
 *
 * `sleeps_until` is WAKEUP_AWAKE, or the instant until which the loop sleeps (CLOCK_NEVER: no
 * deadline); one word thus also answers whether a new deadline is worth a wake-up.
 */
#ifndef ENGINE_WAKEUP_H
#define ENGINE_WAKEUP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"

#define WAKEUP_AWAKE INT64_C(-1)

struct wakeup {
    _Atomic int64_t sleeps_until_ns;
    _Atomic uint64_t sent; /* system calls made; statistics, relaxed */
    int fd;                /* eventfd, readable after wakeup_send() */
};

/*
 * wakeup_open(w):
 * Create the eventfd; the loop counts as awake.
 *
 * Thread: before start
 * Errors: 0; -EMFILE, -ENFILE, -ENOMEM
 */
int wakeup_open(struct wakeup *w) NODISCARD;

/*
 * wakeup_close(w):
 * Close the eventfd.
 *
 * Thread: when no other thread can call wakeup_send() any more
 */
void wakeup_close(struct wakeup *w);

/*
 * wakeup_end_sleep(w):
 * The part of wakeup_send() that is seldom needed.
 *
 * Thread: any
 */
void wakeup_end_sleep(struct wakeup *w);

/*
 * wakeup_send(w):
 * End the sleep if there is one. Call it after the push (see note: wake-up).
 *
 * Thread: any
 */
static inline void wakeup_send(struct wakeup *w)
{
    /* To look first keeps the line shared while the loop is busy. */
    if (atomic_load(&w->sleeps_until_ns) != WAKEUP_AWAKE)
        wakeup_end_sleep(w);
}

/*
 * wakeup_send_before(w, at_ns):
 * As wakeup_send(), unless the loop wakes up by itself at ${at_ns} or earlier.
 *
 * Thread: any
 */
void wakeup_send_before(struct wakeup *w, int64_t at_ns);

/*
 * wakeup_prepare(w, until_ns):
 * Publish that the loop is about to sleep until ${until_ns}. The caller looks for work after this
 * and before it sleeps.
 *
 * Thread: loop
 */
void wakeup_prepare(struct wakeup *w, int64_t until_ns);

/*
 * wakeup_done(w):
 * Publish that the loop is awake.
 *
 * Thread: loop
 */
void wakeup_done(struct wakeup *w);

/*
 * wakeup_clear(w):
 * Take the eventfd's count, after it became readable.
 *
 * Thread: loop
 */
void wakeup_clear(struct wakeup *w);

/*
 * wakeup_wait(w, at_ns):
 * Sleep on the eventfd alone until ${at_ns} at the latest: what is left to do when the loop's epoll
 * instance fails.
 *
 * Thread: loop
 */
void wakeup_wait(struct wakeup *w, int64_t at_ns);

#endif
