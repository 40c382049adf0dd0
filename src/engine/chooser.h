/*
 * engine/chooser: selects the loop for the next connection.
 *
 * round_robin, Netty's rule, and shuffled ignore load; the other rules compare loop_load(). All
 * rules prefer available loops, because a loop that cannot start would always have the least load.
 *
 * note: shuffled. Each round visits every loop once, in a random order, so that arrivals with a
 * pattern (one long, three short) do not put all long ones on one loop. n rounds form a block with
 * a random order P; its rounds start at different places S of P, also in random order. So within a
 * block each place of a round meets every loop once:
 *
 *   place p of round r -> loop P[(p + S[r]) mod n]
 *
 * note: near. A loop that has accepted a connection keeps it: a hand-over costs a wake-up and a
 * cold cache. It hands over to one of two random loops that has clearly fewer: with one more than
 * the other, or an eighth more, a difference is chance and passes.
 */
#ifndef ENGINE_CHOOSER_H
#define ENGINE_CHOOSER_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/must.h"
#include "engine/loop.h"

enum chooser_kind { CHOOSER_ROUND_ROBIN, CHOOSER_LEAST_CONNECTIONS, CHOOSER_P2C, CHOOSER_SHUFFLED };

/* The rounds of one source of arrivals; see note: shuffled. */
struct chooser_rounds {
    uint64_t seed;
    _Atomic uint64_t next;
};

struct chooser {
    enum chooser_kind kind;
    _Atomic uint64_t next;
    struct chooser_rounds rounds; /* of chooser_pick() */
};

/*
 * chooser_rounds_init(r):
 * Begin the first round, in an order of its own.
 *
 * Thread: any, before other threads use ${r}
 */
void chooser_rounds_init(struct chooser_rounds *r);

/*
 * chooser_init(c, kind):
 * Initialize ${c} for the rule ${kind}.
 *
 * Thread: any, before other threads use ${c}
 */
void chooser_init(struct chooser *c, enum chooser_kind kind);

/*
 * chooser_pick(c, loops, n):
 * Select one of ${n} > 0 loops: an available one, else a full one, else one whose thread could not
 * start. NULL when all have ended.
 *
 * Source: Mitzenmacher, "The Power of Two Choices" (2001)
 */
struct loop *chooser_pick(struct chooser *c, struct loop *const *loops, unsigned n);

/*
 * chooser_pick_in(c, rounds, loops, n):
 * chooser_pick() for arrivals that have rounds of their own, which only CHOOSER_SHUFFLED uses.
 */
struct loop *chooser_pick_in(struct chooser *c, struct chooser_rounds *rounds,
                             struct loop *const *loops, unsigned n);

/*
 * chooser_pick_near(c, own, loops, n):
 * Select ${own}, or the less loaded of two random others if it has clearly fewer connections (note:
 * near). NULL if ${own} is not one of the ${n} loops.
 *
 * Thread: loop ${own}
 */
struct loop *chooser_pick_near(struct chooser *c, struct loop *own, struct loop *const *loops,
                               unsigned n);

/* chooser_availability(c, loops, n): the best availability among the loops. */
enum loop_availability chooser_availability(const struct chooser *c, struct loop *const *loops,
                                            unsigned n);

#endif
