/*
 * support/loop_thread: the thread of a loop, seen from outside.
 */
#ifndef SUPPORT_LOOP_THREAD_H
#define SUPPORT_LOOP_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/loop.h"

struct loop_thread {
    pthread_t thread;
    pid_t tid;
};

/*
 * loop_thread_find(out, loop):
 * Which it is; it is started if there is none yet.
 *
 * Thread: none that is a loop
 * Errors: 0; as loop_submit()
 */
int loop_thread_find(struct loop_thread *out, struct loop *loop) NODISCARD;

/*
 * loop_thread_sleeps(t, for_ns):
 * Watch it for ${for_ns}: has it slept all the time? One that waits for a processor does not count
 * as asleep, however busy the machine is.
 *
 * Thread: any but the loop's
 * Units:  ns, under 1 s
 * Errors: none (false if it has ended)
 */
bool loop_thread_sleeps(const struct loop_thread *t, int64_t for_ns);

#endif
