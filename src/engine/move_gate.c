#include "engine/move_gate.h"

#include <sched.h>

#define MOVE_GATE_VISIT (UINT64_C(1) << 32)

bool move_gate_enter(struct move_gate *g)
{
    uint64_t old = atomic_load_explicit(&g->word, memory_order_relaxed);

    do {
        if (old >= MOVE_GATE_VISIT)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&g->word, &old, old + 1, memory_order_acq_rel,
                                                    memory_order_relaxed));
    return true;
}

void move_gate_leave(struct move_gate *g)
{
    atomic_fetch_sub_explicit(&g->word, 1, memory_order_release);
}

void move_gate_hold(struct move_gate *g)
{
    atomic_fetch_add_explicit(&g->word, MOVE_GATE_VISIT, memory_order_acq_rel);
    while (atomic_load_explicit(&g->word, memory_order_acquire) % MOVE_GATE_VISIT > 0)
        sched_yield();
}

void move_gate_release(struct move_gate *g)
{
    atomic_fetch_sub_explicit(&g->word, MOVE_GATE_VISIT, memory_order_release);
}
