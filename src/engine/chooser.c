/* engine/chooser: see chooser.h. */
#include "engine/chooser.h"

#include <stddef.h>

#include "base/hash.h"
#include "engine/loop.h"

void chooser_init(struct chooser *c, enum chooser_kind kind)
{
    c->kind = kind;
    atomic_init(&c->next, 0);
}

static bool chooser_usable(const struct loop *loop)
{
    return loop_state(loop) < LOOP_SHUTDOWN;
}

/* The first usable loop at or behind ${start}. */
static struct loop *chooser_from(struct loop *const *loops, unsigned n, unsigned start)
{
    for (unsigned i = 0; i < n; i++) {
        struct loop *loop = loops[start + i < n ? start + i : start + i - n];

        if (chooser_usable(loop))
            return loop;
    }
    return NULL;
}

/* Loops of equal load take turns, because the search begins at ${start}. */
static struct loop *chooser_least(struct loop *const *loops, unsigned n, unsigned start)
{
    struct loop *best = NULL;

    for (unsigned i = 0; i < n; i++) {
        struct loop *loop = loops[start + i < n ? start + i : start + i - n];

        if (chooser_usable(loop) && (!best || loop_load(loop) < loop_load(best)))
            best = loop;
    }
    return best;
}

static struct loop *chooser_two(struct loop *const *loops, unsigned n, uint64_t tick)
{
    uint64_t random = hash_mix(tick); /* as good as random for two choices */
    struct loop *a = chooser_from(loops, n, (uint32_t)random % n);
    struct loop *b = chooser_from(loops, n, (uint32_t)(random >> 32) % n);

    return a && b && loop_load(b) < loop_load(a) ? b : a;
}

struct loop *chooser_pick(struct chooser *c, struct loop *const *loops, unsigned n)
{
    /* Relaxed: only the sequence of values matters, not what else was written. */
    uint64_t tick = atomic_fetch_add_explicit(&c->next, 1, memory_order_relaxed);
    unsigned start = (unsigned)((n & (n - 1)) == 0 ? tick & (n - 1) : tick % n);

    switch (c->kind) {
    case CHOOSER_ROUND_ROBIN: return chooser_from(loops, n, start);
    case CHOOSER_LEAST_CONNECTIONS: return chooser_least(loops, n, start);
    case CHOOSER_P2C: return chooser_two(loops, n, tick);
    }
    MUST(!"a chooser kind");
    return NULL;
}
