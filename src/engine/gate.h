/*
 * engine/gate: who may still add a task, and how many are inside.
 *
 * One word holds the number of accepted and unfinished tasks and, in its top bit, whether the gate
 * is closed. A producer enters before it pushes and the consumer leaves for it afterwards, so that
 * when the gate is closed and the count is zero no push is under way: every task was accepted or
 * refused, and none is lost.
 */
#ifndef ENGINE_GATE_H
#define ENGINE_GATE_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"

#define GATE_CLOSED (UINT64_C(1) << 63)

struct gate {
    _Atomic uint64_t word;
};

/*
 * gate_init(g):
 * Open, nobody inside.
 *
 * Thread: before start
 */
void gate_init(struct gate *g);

/*
 * gate_enter(g, max):
 * Count one more task in, unless ${max} are inside. Returns how many were inside before.
 *
 * Thread: any
 * Errors: 0 or more; -EAGAIN (${max} reached); -ESHUTDOWN (closed)
 */
static inline int64_t gate_enter(struct gate *g, uint64_t max)
{
    /*
     * Acquire and release: what the consumer did before gate_leave() is seen by who enters in its
     * place.
     */
    uint64_t old = atomic_fetch_add_explicit(&g->word, 1, memory_order_acq_rel);

    if (__builtin_expect(!(old & GATE_CLOSED) && old < max, 1))
        return (int64_t)old;
    atomic_fetch_sub_explicit(&g->word, 1, memory_order_acq_rel);
    return old & GATE_CLOSED ? -ESHUTDOWN : -EAGAIN;
}

/*
 * gate_leave(g, n):
 * Count ${n} tasks out.
 *
 * Thread: consumer, or who entered and pushed nothing
 */
void gate_leave(struct gate *g, uint64_t n);

/*
 * gate_close(g):
 * Refuse all tasks from now on.
 *
 * Thread: any
 */
void gate_close(struct gate *g);

/*
 * gate_count(g):
 * How many tasks are inside.
 *
 * Thread: any
 */
uint64_t gate_count(const struct gate *g);

#endif
