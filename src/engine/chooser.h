/*
 * engine/chooser: selects the loop for the next connection.
 *
 * round_robin, Netty's rule, ignores load; the other rules compare loop_load(). All rules prefer
 * available loops, because a loop that cannot start would always have the least load.
 */
#ifndef ENGINE_CHOOSER_H
#define ENGINE_CHOOSER_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/must.h"
#include "engine/loop.h"

enum chooser_kind { CHOOSER_ROUND_ROBIN, CHOOSER_LEAST_CONNECTIONS, CHOOSER_P2C };

struct chooser {
    enum chooser_kind kind;
    _Atomic uint64_t next;
};

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
 * Thread: any
 * Source: Mitzenmacher, "The Power of Two Choices" (2001)
 */
struct loop *chooser_pick(struct chooser *c, struct loop *const *loops, unsigned n);

/*
 * chooser_availability(c, loops, n):
 * The best availability among the loops.
 *
 * Thread: any
 */
enum loop_availability chooser_availability(const struct chooser *c, struct loop *const *loops,
                                            unsigned n);

#endif
