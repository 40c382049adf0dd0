/*
 * engine/timer_heap: what a loop has to do at an instant, in the order of the instants.
 *
 * A pairing heap whose nodes live in the timed tasks themselves, so that scheduling cannot fail for
 * lack of memory. Equal instants come out in the order they were scheduled.
 *
 * Timers that have come due wait in a list, each with a place among the owner's other tasks.
 * Fetching them costs O(log n) each and counting them O(1), so the owner bounds what it fetches at
 * a time.
 */
#ifndef ENGINE_TIMER_HEAP_H
#define ENGINE_TIMER_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/timer.h"

/* For timer_heap_fetch_due(): a task that is queued then waits for this many timers at most. */
#define TIMER_HEAP_DUE_MAX 1024

struct timer_heap {
    struct timer *root;
    uint64_t next_order;
    unsigned count;  /* of the heap */
    unsigned n_due;  /* of the list */
    struct list due; /* of struct timed, in the order in which they came due */
};

/*
 * timer_heap_init(s):
 * Make ${s} empty.
 *
 * Thread: owner of ${s}
 */
void timer_heap_init(struct timer_heap *s);

/*
 * timer_heap_add(s, t):
 * Add ${t}, which is idle, for the instant t->at_ns.
 *
 * Thread: owner of ${s}
 * Owns:   nothing; ${t} must live until it is idle again
 * Source: M. Fredman et al., "The Pairing Heap" (1986)
 */
void timer_heap_add(struct timer_heap *s, struct timer *t);

/*
 * timer_heap_add_again(s, t, now_ns):
 * As timer_heap_add() for a periodic ${t} that has just run: if its next instant is past, it takes
 * its place behind the timers due by ${now_ns}. Otherwise a timer that runs longer than its period
 * would starve all others.
 *
 * Thread: owner of ${s}
 * Units:  ns
 */
void timer_heap_add_again(struct timer_heap *s, struct timer *t, int64_t now_ns);

/*
 * timer_heap_remove(s, t):
 * Make ${t} idle, whatever its state.
 *
 * Thread: owner of ${s}
 */
void timer_heap_remove(struct timer_heap *s, struct timer *t);

/*
 * timer_heap_next_at_ns(s):
 * The first instant; CLOCK_NEVER when nothing waits.
 *
 * Thread: owner of ${s}
 */
int64_t timer_heap_next_at_ns(const struct timer_heap *s);

/*
 * timer_heap_take_due(s, now_ns):
 * The first timed task whose instant is not after ${now_ns}, no longer in the heap and idle; NULL:
 * none.
 *
 * Thread: owner of ${s}
 */
struct timer *timer_heap_take_due(struct timer_heap *s, int64_t now_ns);

/*
 * timer_heap_fetch_due(s, now_ns, place, max):
 * Move timers whose instant is not after ${now_ns} from the heap to the list, until it has ${max}.
 * Their order is then ${place}.
 *
 * Thread: owner of ${s}
 * Units:  ns
 */
void timer_heap_fetch_due(struct timer_heap *s, int64_t now_ns, uint64_t place, unsigned max);

/*
 * timer_heap_first_due(s):
 * The first of the list; NULL when it is empty. timer_heap_remove() takes it off.
 *
 * Thread: owner of ${s}
 */
struct timer *timer_heap_first_due(const struct timer_heap *s);

#endif
