/*
 * engine/telemetry: counters of a loop, for engine/loop_stats.
 *
 * One thread at a time writes a counter, without atomic read-modify-write; any thread reads. All
 * accesses are relaxed, except those of note: doze in watchdog.h.
 */
#ifndef ENGINE_TELEMETRY_H
#define ENGINE_TELEMETRY_H

#include <stdatomic.h>
#include <stdint.h>

#include "engine/histogram.h"
#include "engine/task.h"

struct telemetry {
    _Atomic uint64_t turns;
    _Atomic uint64_t turns_empty;
    _Atomic uint64_t polls_blocking;
    _Atomic uint64_t io_events;
    _Atomic uint64_t tasks_run;
    _Atomic uint64_t tasks_dropped;
    _Atomic uint64_t tasks_own; /* submitted by the loop itself */
    _Atomic uint64_t rebuilds;
    _Atomic uint64_t stalls;
    _Atomic int64_t poll_ns;
    _Atomic int64_t io_ns;
    _Atomic int64_t task_ns;
    _Atomic int64_t longest_ns;
    _Atomic(const char *) longest_name;
    _Atomic int64_t turn_at_ns;  /* end of this turn's poll; 0: polling */
    _Atomic(const char *) doing; /* task type, handler or "I/O" running */
    struct histogram turn;       /* durations of turns, without the poll */
    struct histogram queue_wait; /* waiting times of timestamped tasks */
};

/* Increase a counter; only for its one writing thread. */
#define TELEMETRY_ADD(counter, n)                                                       \
    atomic_store_explicit(&(counter),                                                   \
                          atomic_load_explicit(&(counter), memory_order_relaxed) + (n), \
                          memory_order_relaxed)

#define TELEMETRY_SET(field, value) atomic_store_explicit(&(field), (value), memory_order_relaxed)
#define TELEMETRY_GET(field)        atomic_load_explicit(&(field), memory_order_relaxed)

#endif
