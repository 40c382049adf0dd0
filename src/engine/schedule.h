/*
 * engine/schedule: what a loop has to do at an instant, in the order of the instants.
 *
 * A pairing heap whose nodes live in the timed tasks themselves, so that scheduling cannot fail for lack of
 * memory. Equal instants come out in the order they were scheduled.
 */
#ifndef ENGINE_SCHEDULE_H
#define ENGINE_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/timed.h"

struct schedule {
    struct timed *root;
    uint64_t next_order;
    unsigned count;
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

#endif
