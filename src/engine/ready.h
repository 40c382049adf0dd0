/*
 * engine/ready: serves I/O callbacks in order of arrival.
 *
 * note: arrival order. libev calls pending watchers newest first. So each callback runs twice per
 * poll: the first call makes its watcher pending again at a lower priority, which restores the
 * order. Stopping a watcher clears its pending event.
 *
 * libev's manual forbids changing an active watcher's priority. But ev.c (4.33) reads it only for
 * pending watchers, and a watcher is not pending in its callback.
 */
#ifndef ENGINE_READY_H
#define ENGINE_READY_H

#include <ev.h>
#include <stdbool.h>

#include "base/must.h"

#define READY_FIRST 0    /* priority of a watcher's first call */
#define READY_TURN  (-1) /* priority of its second call */

/*
 * ready_in_order(ev, w, revents):
 * Call this first in the callback of ${w}. True: do the work now; false: return, libev calls again
 * after the watchers that were ready earlier.
 *
 * Thread: loop
 */
static inline bool NODISCARD ready_in_order(struct ev_loop *ev, struct ev_io *w, int revents)
{
    if (ev_priority(w) == READY_TURN) {
        ev_set_priority(w, READY_FIRST);
        return true;
    }
    ev_set_priority(w, READY_TURN);
    ev_feed_event(ev, w, revents);
    return false;
}

/* ready_stop(ev, w): ev_io_stop() for a watcher that uses ready_in_order(). Thread: loop */
static inline void ready_stop(struct ev_loop *ev, struct ev_io *w)
{
    ev_io_stop(ev, w);
    ev_set_priority(w, READY_FIRST);
}

#endif
