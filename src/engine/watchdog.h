/*
 * engine/watchdog: are all loops turning?
 *
 * Two ways to tell that one is not. Each loop publishes when its turn began and what it runs: a
 * turn that lasts longer than the threshold is a stall, seen without disturbing the loop. And now
 * and then each loop is sent a beat, a control task that it must have run by the next one: that
 * finds a loop that sleeps although it should not. (Where a turn may last longer than the time
 * between two beats, the beats are as far apart as that.)
 */
#ifndef ENGINE_WATCHDOG_H
#define ENGINE_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/must.h"

struct loop;
struct watchdog;

/* Between two beats: rare enough to cost an idle process nothing. */
#define WATCHDOG_BEAT_NS (5 * NS_PER_S)

/* The longest time between two looks, so that a stall is told within a second. */
#define WATCHDOG_LOOK_MAX_NS (500 * NS_PER_MS)

/*
 * watchdog_create(out, max_loops, threshold_ns):
 * Nothing is watched yet. With a threshold of 0 nothing ever stalls, but beats are sent.
 *
 * Thread: any
 * Units:  ns
 * Errors: 0; -ENOMEM
 */
int watchdog_create(struct watchdog **out, unsigned max_loops, int64_t threshold_ns) NODISCARD;

/*
 * watchdog_add(w, loop):
 * Watch ${loop} as well. A loop that was not started or has ended is fine.
 *
 * Thread: the one that checks
 * Owns:   ${loop} is borrowed
 */
void watchdog_add(struct watchdog *w, struct loop *loop);

/*
 * watchdog_interval_ns(w):
 * How often watchdog_check() is to be called.
 *
 * Thread: any
 * Units:  ns
 */
int64_t watchdog_interval_ns(const struct watchdog *w);

/*
 * watchdog_check(w):
 * Look at every loop; log what begins to stall, with the task or handler it is in, and what goes on
 * again. True when every loop turns.
 *
 * Thread: one, not a loop
 */
bool watchdog_check(struct watchdog *w);

/*
 * watchdog_destroy(w):
 * Free it; NULL is allowed.
 *
 * Thread: any, when its loops have ended
 */
void watchdog_destroy(struct watchdog *w);

#endif
