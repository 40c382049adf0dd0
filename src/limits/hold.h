/*
 * limits/hold: an administrator's pause of a listener or upstream. A closed hold lets only its
 * allowance of clients pass.
 *
 * All accesses are sequentially consistent. After hold_open() or hold_allow() the caller looks for
 * waiters; a waiter publishes that it waits, then tries again (note: limit in
 * limits/connection_limit.h).
 */
#ifndef LIMITS_HOLD_H
#define LIMITS_HOLD_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/must.h"

/* All zero: open. */
struct hold {
    atomic_bool is_closed;
    atomic_uint allowance; /* clients that may pass while closed */
};

/* hold_is_closed(h): is ${h} closed? */
static inline bool hold_is_closed(const struct hold *h)
{
    return atomic_load(&h->is_closed);
}

/*
 * hold_pass(h) / hold_give_back(h):
 * Let one client pass; false if ${h} is closed and its allowance used up / undo hold_pass(): no
 * client came.
 */
bool hold_pass(struct hold *h) NODISCARD;
void hold_give_back(struct hold *h);

/*
 * hold_close(h) / hold_open(h) / hold_allow(h, n):
 * Let no client pass / let all pass / set the allowance to ${n} and return the rest of the previous
 * one.
 *
 * Thread: any, one at a time; hold_open(): any
 */
void hold_close(struct hold *h);
void hold_open(struct hold *h);
unsigned hold_allow(struct hold *h, unsigned n);

#endif
