/*
 * engine/wakeup: ends a loop's sleep by an eventfd, with at most one system call per sleep.
 *
 * note: wake-up. A producer pushes its task, then checks whether the loop sleeps; the loop
 * publishes its sleep, then checks for tasks. All four accesses are sequentially consistent: at
 * least one side sees the other side's store. An exchange lets only one producer make the system
 * call.
 *
 * Whoever ends a sleep also ends that of the `watcher` (note: doze in engine/watchdog.h).
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
    _Atomic uint64_t sent;            /* system calls; relaxed */
    _Atomic(struct wakeup *) watcher; /* NULL: none */
    int fd;
};

/*
 * wakeup_open(w):
 * Create the eventfd and mark the loop as awake.
 *
 * Thread: any, before other threads use ${w}
 * Errors: 0; -EMFILE, -ENFILE, -ENOMEM
 */
int wakeup_open(struct wakeup *w) NODISCARD;

/* wakeup_close(w): close the eventfd. Thread: any, when no thread can call wakeup_send() */
void wakeup_close(struct wakeup *w);

/*
 * wakeup_end_sleep(w):
 * Slow path of wakeup_send(): end the sleep. If that fails, the loop counts as asleep still, and
 * the next producer tries again.
 */
void wakeup_end_sleep(struct wakeup *w);

/* wakeup_send(w): wake the loop if it sleeps. Call this after the push (note: wake-up). */
static inline void wakeup_send(struct wakeup *w)
{
    /* A load keeps the cache line shared while the loop is busy. */
    if (atomic_load(&w->sleeps_until_ns) != WAKEUP_AWAKE)
        wakeup_end_sleep(w);
}

/* wakeup_send_watcher(w): wake the watcher if it sleeps. */
static inline void wakeup_send_watcher(struct wakeup *w)
{
    struct wakeup *watcher = atomic_load_explicit(&w->watcher, memory_order_acquire);

    if (watcher)
        wakeup_send(watcher);
}

/* wakeup_send_before(w, at_ns): wakeup_send(), unless the loop wakes by ${at_ns} anyway. */
void wakeup_send_before(struct wakeup *w, int64_t at_ns);

/*
 * wakeup_prepare(w, until_ns):
 * Publish a sleep until ${until_ns}; check for work afterwards.
 *
 * Thread: loop
 */
void wakeup_prepare(struct wakeup *w, int64_t until_ns);

/* wakeup_done(w): mark the loop as awake. Thread: loop */
void wakeup_done(struct wakeup *w);

/* wakeup_clear(w): reset the readable eventfd. Thread: loop */
void wakeup_clear(struct wakeup *w);

/*
 * wakeup_wait(w, at_ns):
 * Wait for the eventfd until ${at_ns}, without epoll, which has failed.
 *
 * Thread: loop
 */
void wakeup_wait(struct wakeup *w, int64_t at_ns);

#endif
