/*
 * engine/io_tune: io_ratio = auto: a loop sets its share for I/O by how long its tasks wait.
 *
 * Once a second the 99th percentile of the waits since the last look is compared with the goal.
 * Above it, I/O gives up a quarter of its share; below half of it, I/O gets one percent more. So a
 * flood of tasks is answered within seconds, and a quiet second does not bring it back. Below
 * IO_TUNE_WAITS measured waits nothing changes. Waits are known within a factor of two
 * (engine/histogram).
 *
 * note: unused. I/O that took less than half of its share did not make the tasks wait: they wait
 * for each other, and a smaller share would not help them.
 */
#ifndef ENGINE_IO_TUNE_H
#define ENGINE_IO_TUNE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/clock.h"
#include "engine/telemetry.h"

#define IO_TUNE_LEAST     10
#define IO_TUNE_MOST      90
#define IO_TUNE_START     50
#define IO_TUNE_WAITS     8
#define IO_TUNE_PERIOD_NS NS_PER_S

/* The loop writes; any thread reads the atomics, relaxed. */
struct io_tune {
    int64_t looked_at_ns; /* 0: never */
    struct histogram_view before;
    int64_t io_ns, task_ns;       /* of the telemetry at the last look */
    atomic_uint io_ratio;         /* 0: before the first look */
    _Atomic int64_t wait_ns;      /* the 99th percentile of the last look */
    _Atomic(const char *) reason; /* why the share is what it is; NULL: as `io_ratio` */
};

/*
 * io_tune_look(t, loop, goal_ns, now_ns):
 * Compare the waits in ${loop} with the goal, and set the share.
 *
 * Thread: loop
 */
void io_tune_look(struct io_tune *t, const struct telemetry *loop, int64_t goal_ns, int64_t now_ns);

/*
 * io_tune_ratio(t, loop, goal_ns, now_ns):
 * Return the share for I/O in percent; look first if it is time.
 *
 * Thread: loop
 */
static inline unsigned io_tune_ratio(struct io_tune *t, const struct telemetry *loop,
                                     int64_t goal_ns, int64_t now_ns)
{
    if (now_ns - t->looked_at_ns >= IO_TUNE_PERIOD_NS)
        io_tune_look(t, loop, goal_ns, now_ns);
    return atomic_load_explicit(&t->io_ratio, memory_order_relaxed);
}

/*
 * io_tune_in_use(t) / io_tune_reason(t):
 * Return the share / why it is that.
 */
unsigned io_tune_in_use(const struct io_tune *t);
const char *io_tune_reason(const struct io_tune *t);

#endif
