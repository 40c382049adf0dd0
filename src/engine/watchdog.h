/*
 * engine/watchdog: detects loops that stall, or sleep while tasks wait.
 *
 * A turn longer than the threshold is a stall. The watchdog also sends loops that have run, or have
 * tasks, a control task, the beat. A loop that has not run its beat when the next one is due sleeps
 * while tasks wait.
 *
 * note: doze. While all loops sleep, watchdog_check() need not be called: the watchdog dozes. The
 * next turn of a loop, and the next task for a loop that sleeps, end that by the watchdog's own
 * wake-up (engine/wakeup.h):
 *
 *   loop:      store `turn_at_ns`, load `sleeps_until_ns`     (a producer: push, load)
 *   watchdog:  store `sleeps_until_ns`, load all `turn_at_ns` and `newest`
 *
 * All four are sequentially consistent: if the loop does not see the doze, the watchdog sees the
 * turn, and stays awake. So no turn begins unseen, however long it takes. The end of a turn may be
 * seen late: this only delays a doze. Under load the watchdog does not doze, and a turn costs no
 * system call. tests/model/doze.pml checks this.
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

/* A doze begins if no loop has run more turns since the last check: ending it costs few of them. */
#define WATCHDOG_FEW_TURNS 8

/*
 * watchdog_create(out, max_loops, threshold_ns):
 * Create a watchdog without loops. If ${threshold_ns} is 0, it checks only the beats.
 *
 * Errors: 0; -ENOMEM; -EMFILE, -ENFILE
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

/* watchdog_interval_ns(w): how often to call watchdog_check(), except in a doze. */
int64_t watchdog_interval_ns(const struct watchdog *w);

/*
 * watchdog_check(w):
 * Log begin and end of stalls and missed beats; false if a loop stalls, or sleeps while tasks wait.
 * A check in a doze ends it, and sends a beat to all loops.
 *
 * Thread: any but loops, one at a time
 */
bool watchdog_check(struct watchdog *w);

/*
 * watchdog_doze(w) / watchdog_fd(w):
 * Begin a doze after a check, if all loops sleep and have run few turns; else return false / this
 * descriptor is readable when a loop has ended the doze.
 *
 * Thread: as watchdog_check()
 */
bool watchdog_doze(struct watchdog *w);
int watchdog_fd(const struct watchdog *w);

/* watchdog_destroy(w): free ${w} or NULL. Thread: any, when no thread submits to its loops */
void watchdog_destroy(struct watchdog *w);

#endif
