/*
 * engine/move_gate: keeps visits of all objects on a group's loops apart from moves of objects
 * between these loops.
 *
 * note: move gate. A visit that must meet each object exactly once holds moves off: it waits for
 * those between move_gate_enter() and move_gate_leave(), in which a loop gives up an object and
 * submits it to the control queue of another. The visit's tasks come behind in that queue, so they
 * find the object there. Both sides change one word by acquire and release: the visit sees what was
 * submitted. tests/model/move.pml is a model of this.
 */
#ifndef ENGINE_MOVE_GATE_H
#define ENGINE_MOVE_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"

/* Zeroed: no visit and no move is under way. */
struct move_gate {
    _Atomic uint64_t word; /* moves, and visits times MOVE_GATE_VISIT */
};

/*
 * move_gate_enter(g) / move_gate_leave(g):
 * Begin a move; false: visits hold moves off / the object was submitted. The caller must not wait
 * in between.
 */
bool move_gate_enter(struct move_gate *g) NODISCARD;
void move_gate_leave(struct move_gate *g);

/*
 * move_gate_hold(g) / move_gate_release(g):
 * Hold off moves, and wait for those under way, some microseconds / allow them again.
 */
void move_gate_hold(struct move_gate *g);
void move_gate_release(struct move_gate *g);

#endif
