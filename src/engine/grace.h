/*
 * engine/grace: waiting until no loop of a group can still be using what was taken out of sight.
 *
 * What loops read through one atomic pointer can be replaced at any time, but not freed at once: a
 * loop may have read the old pointer just before. When every loop has come to a task that was
 * submitted later, none has it any more, unless it counted itself in as a user (note: grace).
 * Readers pay nothing for this, and the one who replaces never waits.
 *
 * note: grace. A reader loads the pointer and counts itself in within one task or handler; it may
 * then keep what it has found from turn to turn.
 */
#ifndef ENGINE_GRACE_H
#define ENGINE_GRACE_H

#include "base/must.h"
#include "engine/loop_group.h"

struct grace;

/*
 * grace_create(out, g, over, cookie):
 * Get ready for grace_begin(), so that this one cannot fail.
 *
 * Thread: any
 * Owns:   the caller owns ${out} until grace_begin() or grace_destroy()
 * Errors: 0; -ENOMEM
 */
int grace_create(struct grace **out, struct loop_group *g, void (*over)(void *cookie),
                 void *cookie) NODISCARD;

/*
 * grace_begin(gr):
 * Call over(cookie) once every loop of the group has come to its next control task, or has ended.
 * Loops without a thread are not waited for. It is called on one of the loops, or by grace_begin()
 * when none is left to wait for; ${gr} is gone then.
 *
 * Thread: any; after the pointer was replaced (a sequentially consistent store)
 */
void grace_begin(struct grace *gr);

/*
 * grace_destroy(gr):
 * Free what never began; NULL is allowed.
 *
 * Thread: any
 */
void grace_destroy(struct grace *gr);

#endif
