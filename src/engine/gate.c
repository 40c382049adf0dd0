/* engine/gate: see gate.h. */
#include "engine/gate.h"

#include <errno.h>

#define GATE_CLOSED (UINT64_C(1) << 63)

void gate_init(struct gate *g)
{
    atomic_init(&g->word, 0);
}

int64_t gate_enter(struct gate *g, uint64_t max)
{
    /* Acquire and release: what the consumer did before gate_leave() is seen by who enters in its place. */
    uint64_t old = atomic_fetch_add_explicit(&g->word, 1, memory_order_acq_rel);

    if (__builtin_expect(!(old & GATE_CLOSED) && old < max, 1))
        return (int64_t)old;
    atomic_fetch_sub_explicit(&g->word, 1, memory_order_acq_rel);
    return old & GATE_CLOSED ? -ESHUTDOWN : -EAGAIN;
}

void gate_leave(struct gate *g, uint64_t n)
{
    if (n > 0)
        atomic_fetch_sub_explicit(&g->word, n, memory_order_acq_rel);
}

void gate_close(struct gate *g)
{
    atomic_fetch_or_explicit(&g->word, GATE_CLOSED, memory_order_acq_rel);
}

uint64_t gate_count(const struct gate *g)
{
    return atomic_load_explicit(&g->word, memory_order_acquire) & ~GATE_CLOSED;
}
