/*
 * engine/timer_heap: timers in a pairing heap, and a list of due timers.
 *
 * Timers are the nodes, so adding cannot fail. Timers of one instant keep their order. Silence
 * timers have a heap of their own, so that other timers do not wait for them.
 */
#ifndef ENGINE_TIMER_HEAP_H
#define ENGINE_TIMER_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/timer.h"

/* Limit of the list of due timers: a queued task may have to wait for all of them. */
#define TIMER_HEAP_DUE_MAX 1024

struct timer_heap {
    struct timer *root;
    struct timer *silence_root;
    uint64_t next_order;
    unsigned count;
    unsigned n_due;
    struct list due; /* struct timer, in due order */
};

/* timer_heap_init(s): initialize an empty heap. Thread: owner */
void timer_heap_init(struct timer_heap *s);

/*
 * timer_heap_add(s, t):
 * Add the idle ${t} at t->at_ns; it must live until idle again.
 *
 * Thread: owner
 * Source: M. Fredman et al., "The Pairing Heap" (1986)
 */
void timer_heap_add(struct timer_heap *s, struct timer *t);

/*
 * timer_heap_add_again(s, t, now_ns):
 * Add a periodic ${t} after its run. A late ${t} goes behind the timers due by ${now_ns}, so as not
 * to starve them.
 *
 * Thread: owner
 */
void timer_heap_add_again(struct timer_heap *s, struct timer *t, int64_t now_ns);

/* timer_heap_remove(s, t): make ${t} idle, from any state. Thread: owner */
void timer_heap_remove(struct timer_heap *s, struct timer *t);

/*
 * timer_heap_next_at_ns(s):
 * When the heap's first timer is due; CLOCK_NEVER: no timer.
 *
 * Thread: owner
 */
int64_t timer_heap_next_at_ns(const struct timer_heap *s);

/*
 * timer_heap_take_due(s, now_ns):
 * Remove the first timer due by ${now_ns}; NULL: none.
 *
 * Thread: owner
 */
struct timer *timer_heap_take_due(struct timer_heap *s, int64_t now_ns);

/*
 * timer_heap_fetch_due(s, now_ns, heard_ns, place, max):
 * Move timers due by ${now_ns}, and silence timers due by ${heard_ns}, to the list until it has
 * ${max}; ${place} is their position among the queued tasks.
 *
 * Thread: owner
 */
void timer_heap_fetch_due(struct timer_heap *s, int64_t now_ns, int64_t heard_ns, uint64_t place,
                          unsigned max);

/*
 * timer_heap_first_due(s):
 * Return the first timer of the list without removing it; NULL: none.
 *
 * Thread: owner
 */
struct timer *timer_heap_first_due(const struct timer_heap *s);

#endif
