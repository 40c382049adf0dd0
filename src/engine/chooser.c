#include "engine/chooser.h"

#include <stddef.h>

#include "base/hash.h"
#include "engine/loop.h"

/*
 * A loop passes a client on to one with fewer connections: by more than this number, and more than
 * this part of the other's.
 */
#define CHOOSER_NEAR      1
#define CHOOSER_NEAR_PART 8

void chooser_init(struct chooser *c, enum chooser_kind kind)
{
    c->kind = kind;
    atomic_init(&c->next, 0);
    chooser_rounds_init(&c->rounds);
}

void chooser_rounds_init(struct chooser_rounds *r)
{
    r->seed = hash_seed();
    atomic_init(&r->next, 0);
}

static struct loop *chooser_at(struct loop *const *loops, unsigned n, unsigned i)
{
    return loops[i < n ? i : i - n];
}

/* Return the first loop, from ${start} on, with the best availability, ${found}. */
static struct loop *chooser_from(struct loop *const *loops, unsigned n, unsigned start,
                                 enum loop_availability *found)
{
    struct loop *best = NULL;

    *found = LOOP_NOT_AVAILABLE;
    for (unsigned i = 0; i < n && *found != LOOP_AVAILABLE; i++) {
        struct loop *loop = chooser_at(loops, n, start + i);
        enum loop_availability now = loop_availability(loop);

        if (now < *found) {
            *found = now;
            best = loop;
        }
    }
    return best;
}

/*
 * Return the least loaded loop with the best availability; of equals, the first from ${start} on.
 */
static struct loop *chooser_least(struct loop *const *loops, unsigned n, unsigned start)
{
    enum loop_availability found = LOOP_NOT_AVAILABLE;
    struct loop *best = NULL;

    for (unsigned i = 0; i < n; i++) {
        struct loop *loop = chooser_at(loops, n, start + i);
        enum loop_availability now = loop_availability(loop);

        if (now < found || (best && now == found && loop_load(loop) < loop_load(best))) {
            found = now;
            best = loop;
        }
    }
    return best;
}

static struct loop *chooser_two(struct loop *const *loops, unsigned n, uint64_t tick)
{
    uint64_t random = hash_mix(tick);
    enum loop_availability of_a, of_b;
    struct loop *a = chooser_from(loops, n, (uint32_t)random % n, &of_a);
    struct loop *b = chooser_from(loops, n, (uint32_t)(random >> 32) % n, &of_b);

    if (of_a != of_b)
        return of_a < of_b ? a : b;
    return a && b && loop_load(b) < loop_load(a) ? b : a;
}

/* The ${i}th number of a random order of 0 to ${n} - 1: its rank among random numbers. */
static unsigned chooser_permuted(uint64_t key, unsigned i, unsigned n)
{
    uint64_t mine = hash_mix(key + i);
    unsigned rank = 0;

    for (unsigned k = 0; k < n; k++)
        rank += hash_mix(key + k) < mine;
    return rank;
}

/* See note: shuffled. Returns the first loop with the best availability, from the tick's place. */
static struct loop *chooser_shuffled(struct chooser_rounds *rounds, struct loop *const *loops,
                                     unsigned n)
{
    uint64_t tick = atomic_fetch_add_explicit(&rounds->next, 1, memory_order_relaxed);
    uint64_t round = tick / n, order = hash_mix(rounds->seed + round / n);
    unsigned first =
        (unsigned)(tick % n) + chooser_permuted(hash_mix(order), (unsigned)(round % n), n);
    enum loop_availability found = LOOP_NOT_AVAILABLE;
    struct loop *best = NULL;

    for (unsigned i = 0; i < n && found != LOOP_AVAILABLE; i++) {
        struct loop *loop = loops[chooser_permuted(order, (first + i) % n, n)];
        enum loop_availability now = loop_availability(loop);

        if (now < found) {
            found = now;
            best = loop;
        }
    }
    return best;
}

static unsigned chooser_start(uint64_t tick, unsigned n)
{
    return (unsigned)((n & (n - 1)) == 0 ? tick & (n - 1) : tick % n);
}

enum loop_availability chooser_availability(const struct chooser *c, struct loop *const *loops,
                                            unsigned n)
{
    uint64_t tick = atomic_load_explicit(&c->next, memory_order_relaxed);
    enum loop_availability found;

    (void)chooser_from(loops, n, chooser_start(tick, n), &found);
    return found;
}

struct loop *chooser_pick(struct chooser *c, struct loop *const *loops, unsigned n)
{
    return chooser_pick_in(c, &c->rounds, loops, n);
}

struct loop *chooser_pick_in(struct chooser *c, struct chooser_rounds *rounds,
                             struct loop *const *loops, unsigned n)
{
    uint64_t tick = atomic_fetch_add_explicit(&c->next, 1, memory_order_relaxed);
    unsigned start = chooser_start(tick, n);
    enum loop_availability found;

    switch (c->kind) {
    case CHOOSER_ROUND_ROBIN: return chooser_from(loops, n, start, &found);
    case CHOOSER_LEAST_CONNECTIONS: return chooser_least(loops, n, start);
    case CHOOSER_P2C: return chooser_two(loops, n, tick);
    case CHOOSER_SHUFFLED: return chooser_shuffled(rounds, loops, n);
    }
    MUST(!"a chooser kind");
    return NULL;
}

/* Has ${other} so few connections that moving one there from ${own} is worth a wake-up? */
static bool chooser_is_lighter(const struct loop *other, const struct loop *own)
{
    unsigned load = loop_load(other);

    return loop_availability(other) == LOOP_AVAILABLE &&
           loop_load(own) > load + CHOOSER_NEAR + load / CHOOSER_NEAR_PART;
}

struct loop *chooser_pick_near(struct chooser *c, struct loop *own, struct loop *const *loops,
                               unsigned n)
{
    struct loop *best = own;
    uint64_t random;
    unsigned i = 0;

    while (i < n && loops[i] != own)
        i++;
    if (i == n)
        return NULL;
    if (n == 1)
        return own;
    random = hash_mix(atomic_fetch_add_explicit(&c->next, 1, memory_order_relaxed));
    for (unsigned tries = 0; tries < 2; tries++) {
        unsigned step = ((uint32_t)random + tries) % (n - 1); /* two different ones, if there are */
        struct loop *other = chooser_at(loops, n, i + 1 + step);

        if (chooser_is_lighter(other, own) && (best == own || loop_load(other) < loop_load(best)))
            best = other;
    }
    return best;
}
