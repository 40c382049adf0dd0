/*
 * engine/grace: RCU-like grace period: wait until no loop of a group can use a replaced object. It
 * is a visit of all loops (engine/visit) with nothing to do.
 *
 * A loop that has run a task submitted after the replacement uses the old object only through a
 * counted reference. The tasks do not wake loops (unless grace_begin_now() is called): a grace
 * period lasts until every loop's next turn.
 *
 * note: grace. To use the object across turns, a reader takes a reference in the same task or
 * callback in which it loads the pointer.
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
 * Owns:   the caller owns ${out} until grace_begin() or grace_destroy()
 * Errors: 0; -ENOMEM
 */
int grace_create(struct grace **out, struct loop_group *g, void (*over)(void *cookie),
                 void *cookie) NODISCARD;

/*
 * grace_begin(gr) / grace_begin_now(gr):
 * Once every loop with a thread has run a tail task or ended, call over(cookie) and free ${gr}. The
 * callback runs on any thread, perhaps inside this call. / The same, and wake loops that sleep.
 *
 * Thread: any, after a sequentially consistent store of the new pointer
 */
void grace_begin(struct grace *gr);
void grace_begin_now(struct grace *gr);

/* grace_destroy(gr): free a grace period that was not begun. NULL is ignored. */
void grace_destroy(struct grace *gr);

#endif
