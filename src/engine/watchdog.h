/*
 * engine/watchdog: detects loops that stall, or sleep while tasks wait.
 *
 * A turn longer than the threshold is a stall. The watchdog also sends each loop a control task,
 * the beat. A loop that has not run its beat when the next one is due sleeps while tasks wait.
 */
#ifndef ENGINE_WATCHDOG_H
#define ENGINE_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/must.h"

struct loop;
struct watchdog;

/* Interval of beats, unless the threshold is longer. */
#define WATCHDOG_BEAT_NS (5 * NS_PER_S)

/* Longest interval of watchdog_check() if it checks for stalls. */
#define WATCHDOG_LOOK_MAX_NS (500 * NS_PER_MS)

/*
 * watchdog_create(out, max_loops, threshold_ns):
 * Create a watchdog without loops. If ${threshold_ns} is 0, it checks only the beats.
 *
 * Errors: 0; -ENOMEM
 */
int watchdog_create(struct watchdog **out, unsigned max_loops, int64_t threshold_ns) NODISCARD;

/*
 * watchdog_add(w, loop):
 * Watch ${loop}, whatever its state.
 *
 * Thread: any, one at a time
 * Owns:   ${loop} must outlive the last check
 */
void watchdog_add(struct watchdog *w, struct loop *loop);

/* watchdog_interval_ns(w): how often to call watchdog_check(). */
int64_t watchdog_interval_ns(const struct watchdog *w);

/*
 * watchdog_check(w):
 * Log begin and end of stalls and missed beats; false if a loop stalls, or sleeps while tasks wait.
 *
 * Thread: any but loops, one at a time
 */
bool watchdog_check(struct watchdog *w);

/* watchdog_destroy(w): free ${w} or NULL. Thread: any, when its loops have ended */
void watchdog_destroy(struct watchdog *w);

#endif
