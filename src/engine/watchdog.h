/*
 * engine/watchdog: detects stalled and sleeping loops.
 *
 * A turn longer than the threshold is a stall. Each loop must also run a control task, the beat,
 * before the next one, a threshold or more later: that finds loops asleep with tasks queued.
 */
#ifndef ENGINE_WATCHDOG_H
#define ENGINE_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/must.h"

struct loop;
struct watchdog;

/* Between beats. */
#define WATCHDOG_BEAT_NS (5 * NS_PER_S)

/* Longest check interval: stalls are reported within a second. */
#define WATCHDOG_LOOK_MAX_NS (500 * NS_PER_MS)

/*
 * watchdog_create(out, max_loops, threshold_ns):
 * Create a watchdog without loops; ${threshold_ns} 0: no stalls, only beats.
 *
 * Thread: any
 * Errors: 0; -ENOMEM
 */
int watchdog_create(struct watchdog **out, unsigned max_loops, int64_t threshold_ns) NODISCARD;

/*
 * watchdog_add(w, loop):
 * Watch ${loop}, in any state.
 *
 * Thread: one, not the checking one's alone
 * Owns:   ${loop} is borrowed
 */
void watchdog_add(struct watchdog *w, struct loop *loop);

/*
 * watchdog_interval_ns(w):
 * Return the interval for watchdog_check().
 *
 * Thread: any
 */
int64_t watchdog_interval_ns(const struct watchdog *w);

/*
 * watchdog_check(w):
 * Check all loops, log begin and end of stalls; true when all turn.
 *
 * Thread: one, not a loop
 */
bool watchdog_check(struct watchdog *w);

/*
 * watchdog_destroy(w):
 * Free ${w} or NULL.
 *
 * Thread: any, when its loops have ended
 */
void watchdog_destroy(struct watchdog *w);

#endif
