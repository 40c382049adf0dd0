#include "engine/gate.h"

void gate_init(struct gate *g)
{
    atomic_init(&g->word, 0);
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
