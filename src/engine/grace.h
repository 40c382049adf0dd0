/*
 * engine/grace: RCU-like grace period: wait until no loop of a group can use a replaced object.
 *
 * Once each loop has run a task submitted after the replacement, the old object can be freed,
 * unless a reader is counted in. Readers and the replacing thread never wait. The tasks wake no
 * loop: a grace period lasts until each loop's next turn.
 *
 * note: grace. A reader loads the pointer and counts itself in within one task or handler; then it
 * may keep the object across turns.
 */
#ifndef ENGINE_GRACE_H
#define ENGINE_GRACE_H

#include "base/must.h"
#include "engine/loop_group.h"

struct grace;

/*
 * grace_create(out, g, over, cookie):
 * Allocate a grace period, so that grace_begin() cannot fail.
 *
 * Thread: any
 * Owns:   the caller, until grace_begin() or grace_destroy()
 * Errors: 0; -ENOMEM
 */
int grace_create(struct grace **out, struct loop_group *g, void (*over)(void *cookie),
                 void *cookie) NODISCARD;

/*
 * grace_begin(gr):
 * Call over(cookie) once every loop with a thread has run a tail task or ended: on a loop, or
 * inside this call. Frees ${gr}.
 *
 * Thread: any, after a sequentially consistent store of the new pointer
 */
void grace_begin(struct grace *gr);

/*
 * grace_destroy(gr):
 * Free ${gr}, never begun, or NULL.
 *
 * Thread: any
 */
void grace_destroy(struct grace *gr);

#endif
