/*
 * limits/hold: pause of a listener or upstream by an administrator: while closed, it lets only as
 * many clients pass as were allowed.
 *
 * Sequentially consistent: the caller of hold_open() or hold_allow() then looks for waiters, and a
 * waiter publishes that it waits before it tries again (note: room in limits/connection_limit.h).
 */
#ifndef LIMITS_HOLD_H
#define LIMITS_HOLD_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/must.h"

/* All zero: open. */
struct hold {
    atomic_bool is_closed;
    atomic_uint allowance; /* how many clients may pass while the hold is closed */
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
 * May one client pass? / the client did not pass after all: let another.
 *
 * Thread: any
 */
bool hold_pass(struct hold *h) NODISCARD;
void hold_give_back(struct hold *h);

/*
 * hold_close(h) / hold_open(h) / hold_allow(h, n):
 * Let no client pass / let all pass / let ${n} pass while ${h} is closed. hold_allow() returns how
 * many of those allowed before have not passed.
 *
 * Thread: any, one at a time; hold_open(): any
 */
void hold_close(struct hold *h);
void hold_open(struct hold *h);
unsigned hold_allow(struct hold *h, unsigned n);

#endif
