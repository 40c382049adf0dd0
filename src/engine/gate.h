/*
 * engine/gate: counts the tasks of a queue, and can refuse new ones.
 *
 * Producers call gate_enter() before they push, the consumer calls gate_leave() for finished tasks.
 * When the gate is closed and its count is zero, the queue is empty and no push is under way.
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

/* gate_init(g): open ${g}. Thread: any, before other threads use ${g} */
void gate_init(struct gate *g);

/*
 * gate_enter(g, max):
 * Count one task in; return the count before.
 *
 * Errors: >= 0; -EAGAIN (${max} reached); -ESHUTDOWN (closed)
 */
static inline int64_t gate_enter(struct gate *g, uint64_t max)
{
    /* acq_rel: a producer that enters sees what the consumer wrote before gate_leave(). */
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
 * Thread: consumer, or a producer that entered and did not push
 */
void gate_leave(struct gate *g, uint64_t n);

/* gate_close(g): refuse all tasks from now on. */
void gate_close(struct gate *g);

/* gate_count(g): return the number of tasks inside. */
uint64_t gate_count(const struct gate *g);

#endif
