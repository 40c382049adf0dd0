/*
 * engine/chooser: which loop of a group gets the next connection.
 *
 * round_robin is Netty's rule (power-of-two mask or modulo over a 64-bit counter, blind to load);
 * the two others read the load each loop publishes, which cures the model's known skew after uneven
 * closes. A loop that cannot be started has no load, and would be chosen again and again: all three
 * prefer a loop that is available.
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
 * Start at the first loop.
 *
 * Thread: before start
 */
void chooser_init(struct chooser *c, enum chooser_kind kind);

/*
 * chooser_pick(c, loops, n):
 * One of the ${n} > 0 ${loops}: an available one, else a full one, else one whose thread could not
 * be started (see loop_availability()). NULL when all of them have ended.
 *
 * Thread: any
 * Source: Netty DefaultEventExecutorChooserFactory; Mitzenmacher, "The Power of Two Choices" (2001)
 */
struct loop *chooser_pick(struct chooser *c, struct loop *const *loops, unsigned n);

/*
 * chooser_look(c, loops, n):
 * How available the loop is that chooser_pick() would return now; the turn does not move on.
 *
 * Thread: any
 */
enum loop_availability chooser_look(const struct chooser *c, struct loop *const *loops, unsigned n);

#endif
