/*
 * limits/hold: a door that an administrator closes for a while, and opens at once or little by
 * little.
 *
 * Sequentially consistent: an open or allow is followed by a look for waiters, and a waiter is
 * published before it tries again (note: room in limits/connection_limit.h).
 */
#ifndef LIMITS_HOLD_H
#define LIMITS_HOLD_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/must.h"

/* All zero: open. */
struct hold {
    atomic_bool is_closed;
    atomic_uint allowance; /* how many may pass while it is closed */
};

/*
 * hold_is_closed(h):
 *
 * Thread: any
 */
static inline bool hold_is_closed(const struct hold *h)
{
    return atomic_load(&h->is_closed);
}

/*
 * hold_pass(h) / hold_give_back(h):
 * May one pass? / it did not pass after all.
 *
 * Thread: any
 */
bool hold_pass(struct hold *h) NODISCARD;
void hold_give_back(struct hold *h);

/*
 * hold_close(h) / hold_open(h) / hold_allow(h, n):
 * Let none pass / let all pass / let ${n} pass while it is closed; returns how many allowed before
 * have not passed.
 *
 * Thread: one at a time; any for hold_open()
 */
void hold_close(struct hold *h);
void hold_open(struct hold *h);
unsigned hold_allow(struct hold *h, unsigned n);

#endif
