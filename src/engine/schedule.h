/*
 * engine/schedule: what a loop has to do at an instant, in the order of the instants.
 *
 * A pairing heap whose nodes live in the timed tasks themselves, so that scheduling cannot fail for lack of
 * memory. Equal instants come out in the order they were scheduled.
 *
 * Timers that have come due wait in a list, each with a place among the owner's other tasks.
 * Fetching them costs O(log n) each and counting them O(1), so the owner bounds what it fetches at
 * a time.
 */
#ifndef ENGINE_SCHEDULE_H
#define ENGINE_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/timed.h"

/* For schedule_fetch_due(): a task that is queued then waits for this many timers at most. */
#define SCHEDULE_DUE_MAX 1024

struct schedule {
    struct timed *root;
    uint64_t next_order;
    unsigned count;  /* of the heap */
    unsigned n_due;  /* of the list */
    struct list due; /* of struct timed, in the order in which they came due */
};

/*
 * schedule_init(s):
 * Make ${s} empty.
 *
 * Thread: owner of ${s}
 * Errors: none
 */
void schedule_init(struct schedule *s);

/*
 * schedule_add(s, t):
 * Add ${t}, which is idle, for the instant t->at_ns.
 *
 * Thread: owner of ${s}
 * Owns:   nothing; ${t} must live until it is idle again
 * Errors: none
 * Source: M. Fredman et al., "The Pairing Heap" (1986)
 */
void schedule_add(struct schedule *s, struct timed *t);

/*
 * schedule_add_again(s, t, now_ns):
 * As schedule_add() for a periodic ${t} that has just run: if its next instant is past, it takes
 * its place behind the timers due by ${now_ns}. Otherwise a timer that runs longer than its period
 * would starve all others.
 *
 * Thread: owner of ${s}
 * Units:  ns
 * Errors: none
 */
void schedule_add_again(struct schedule *s, struct timed *t, int64_t now_ns);

/*
 * schedule_remove(s, t):
 * Make ${t} idle, whatever its state.
 *
 * Thread: owner of ${s}
 * Errors: none
 */
void schedule_remove(struct schedule *s, struct timed *t);

/*
 * schedule_next_at_ns(s):
 * The first instant; CLOCK_NEVER when nothing waits.
 *
 * Thread: owner of ${s}
 * Errors: none
 */
int64_t schedule_next_at_ns(const struct schedule *s);

/*
 * schedule_take_due(s, now_ns):
 * The first timed task whose instant is not after ${now_ns}, no longer in the heap and idle; NULL: none.
 *
 * Thread: owner of ${s}
 * Errors: none
 */
struct timed *schedule_take_due(struct schedule *s, int64_t now_ns);

/*
 * schedule_fetch_due(s, now_ns, place, max):
 * Move timers whose instant is not after ${now_ns} from the heap to the list, until it has ${max}.
 * Their order is then ${place}.
 *
 * Thread: owner of ${s}
 * Units:  ns
 * Errors: none
 */
void schedule_fetch_due(struct schedule *s, int64_t now_ns, uint64_t place, unsigned max);

/*
 * schedule_first_due(s):
 * The first of the list; NULL when it is empty. schedule_remove() takes it off.
 *
 * Thread: owner of ${s}
 * Errors: none
 */
struct timed *schedule_first_due(const struct schedule *s);

#endif
