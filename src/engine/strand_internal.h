/*
 * engine/strand_internal: how an executor's threads take tasks out of a serial. Private to
 * executor*.c and serial.c; all of it is under the executor's lock.
 */
#ifndef ENGINE_STRAND_INTERNAL_H
#define ENGINE_STRAND_INTERNAL_H

#include <stdint.h>

#include "engine/strand.h"
#include "engine/task_list.h"

/*
 * strand_of(place):
 * The serial that ${place} stands for; NULL: none, it is a task.
 *
 * Thread: any, locked
 */
struct strand *strand_of(struct task *place);

/*
 * strand_take(s):
 * The next task for the thread that took the place of ${s}; NULL: that thread is done with ${s},
 * which may be gone.
 *
 * Thread: of the executor, locked
 */
struct task *strand_take(struct strand *s);

/*
 * strand_take_all(s, out):
 * Append to ${out} all tasks that have not begun.
 *
 * Thread: any, locked
 * Owns:   the caller has the tasks
 */
void strand_take_all(struct strand *s, struct task_list *out);

/*
 * strand_oldest_at_ns(s):
 * When the first of its tasks that have not begun was submitted; CLOCK_NEVER: there is none.
 *
 * Thread: any, locked
 */
int64_t strand_oldest_at_ns(const struct strand *s);

#endif
