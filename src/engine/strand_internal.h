/*
 * engine/strand_internal: how executor threads take a strand's tasks, under the executor's lock.
 */
#ifndef ENGINE_STRAND_INTERNAL_H
#define ENGINE_STRAND_INTERNAL_H

#include <stdint.h>

#include "engine/strand.h"
#include "engine/task_list.h"

/*
 * strand_of(place):
 * The strand of ${place} (note: place in strand.c); NULL: ${place} is a task.
 *
 * Thread: any, locked
 */
struct strand *strand_of(struct task *place);

/*
 * strand_take(s):
 * Take the next task, for the thread that took the place of ${s}. NULL: take another place; ${s}
 * may have been freed.
 *
 * Thread: a thread of the executor, locked
 */
struct task *strand_take(struct strand *s);

/* strand_take_all(s, out): move all tasks that have not begun to ${out}. Thread: any, locked */
void strand_take_all(struct strand *s, struct task_list *out);

/*
 * strand_oldest_at_ns(s):
 * When the oldest task not begun was submitted; CLOCK_NEVER: none.
 *
 * Thread: any, locked
 */
int64_t strand_oldest_at_ns(const struct strand *s);

#endif
