/*
 * engine/serial_internal: how an executor's threads take tasks out of a serial. Private to executor*.c and serial.c;
 * all of it is under the executor's lock.
 */
#ifndef ENGINE_SERIAL_INTERNAL_H
#define ENGINE_SERIAL_INTERNAL_H

#include <stdint.h>

#include "engine/serial.h"
#include "engine/task_list.h"

/*
 * serial_of(place):
 * The serial that ${place} stands for; NULL: none, it is a task.
 *
 * Thread: any, locked
 * Errors: none
 */
struct serial *serial_of(struct task *place);

/*
 * serial_take(s):
 * The next task for the thread that took the place of ${s}; NULL: that thread is done with ${s}, which may be gone.
 *
 * Thread: of the executor, locked
 * Errors: none
 */
struct task *serial_take(struct serial *s);

/*
 * serial_take_all(s, out):
 * Append to ${out} all tasks that have not begun.
 *
 * Thread: any, locked
 * Owns:   the caller has the tasks
 * Errors: none
 */
void serial_take_all(struct serial *s, struct task_list *out);

/*
 * serial_oldest_at_ns(s):
 * When the first of its tasks that have not begun was submitted; CLOCK_NEVER: there is none.
 *
 * Thread: any, locked
 * Errors: none
 */
int64_t serial_oldest_at_ns(const struct serial *s);

#endif
