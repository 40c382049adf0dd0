/*
 * engine/ready: I/O callbacks in the order in which the kernel reported their events.
 *
 * note: arrival order. libev calls what is pending newest first, so that who spoke first is served last. So each callback is
 * called twice in a poll: the first call makes its watcher pending again, at a lower priority, which libev comes to when all
 * others were called, and which turns the order round once more. libev still forgets what is pending when the watcher is
 * stopped, so there is no list of ours that a closed descriptor had to be taken off. ev.pod forbids to change the priority
 * of an active watcher; ev.c reads it only where pending events are added, called and cleared, and none is pending while
 * its callback runs. libev 4.33 is the last version; test_ready shows the order.
 */
#ifndef ENGINE_READY_H
#define ENGINE_READY_H

#include <ev.h>
#include <stdbool.h>

#include "base/must.h"

#define READY_FIRST 0 /* the priority of all watchers, but for those whose turn is to come */
#define READY_TURN  (-1)

/*
 * ready_is_turn(ev, w, revents):
 * To be asked first by the callback of ${w}: is it to do its work now? If not it is called again, when those that became
 * ready earlier have done theirs.
 *
 * Thread: loop
 * Errors: none
 */
static inline bool MUST_CHECK ready_is_turn(struct ev_loop *ev, struct ev_io *w, int revents)
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
 * Errors: none
 */
static inline void ready_stop(struct ev_loop *ev, struct ev_io *w)
{
    ev_io_stop(ev, w);
    ev_set_priority(w, READY_FIRST);
}

#endif
