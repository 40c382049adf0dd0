/*
 * engine/ready: I/O callbacks in the order in which the kernel reported their events.
 *
 * note: arrival order. libev calls pending watchers newest first: the descriptor that became ready
 * first is served last. So each callback is called twice in a poll. The first call makes its
 * watcher pending again at a lower priority, which reverses the order once more; libev comes to
 * that priority when all other watchers were called. libev forgets a pending event when its watcher
 * is stopped, so there is no list of ours from which a closed descriptor had to be removed.
 *
 * ev.pod forbids to change the priority of an active watcher. ev.c reads it only where pending
 * events are added, called and cleared, and none is pending while its callback runs. libev 4.33 is
 * the last version; test_ready shows the order.
 */
#ifndef ENGINE_READY_H
#define ENGINE_READY_H

#include <ev.h>
#include <stdbool.h>

#include "base/must.h"

#define READY_FIRST 0 /* of a watcher, unless its second call is pending */
#define READY_TURN  (-1)

/*
 * ready_is_turn(ev, w, revents):
 * Each callback of ${w} asks this first: true if it is to do its work now. If false it is called
 * again, after the watchers that became ready earlier.
 *
 * Thread: loop
 */
static inline bool NODISCARD ready_is_turn(struct ev_loop *ev, struct ev_io *w, int revents)
{
    if (ev_priority(w) == READY_TURN) {
        ev_set_priority(w, READY_FIRST);
        return true;
    }
    ev_set_priority(w, READY_TURN);
    ev_feed_event(ev, w, revents);
    return false;
}

/*
 * ready_stop(ev, w):
 * ev_io_stop() for a watcher whose callback asks ready_is_turn().
 *
 * Thread: loop
 */
static inline void ready_stop(struct ev_loop *ev, struct ev_io *w)
{
    ev_io_stop(ev, w);
    ev_set_priority(w, READY_FIRST);
}

#endif
