/*
 * engine/telemetry: what a loop counts about itself. Private to the engine; read it through
 * engine/loop_stats.
 *
 * Written by the loop alone and read by any thread, all relaxed: each number is exact, together
 * they are not of one instant. One writer needs no read-modify-write, so that counting costs a load
 * and a store.
 */
#ifndef ENGINE_TELEMETRY_H
#define ENGINE_TELEMETRY_H

#include <stdatomic.h>
#include <stdint.h>

#include "engine/histogram.h"
#include "engine/task.h"

struct telemetry {
    _Atomic uint64_t turns;
    _Atomic uint64_t turns_empty; /* nothing ran in them */
    _Atomic uint64_t polls_blocking;
    _Atomic uint64_t io_events;
    _Atomic uint64_t tasks_run;
    _Atomic uint64_t tasks_dropped; /* also by the thread that stops a loop without one */
    _Atomic uint64_t tasks_own;     /* submitted by the loop itself */
    _Atomic uint64_t rebuilds;
    _Atomic uint64_t stalls;
    _Atomic int64_t poll_ns;
    _Atomic int64_t io_ns;
    _Atomic int64_t task_ns;
    _Atomic int64_t longest_ns;
    _Atomic(const char *) longest_name;
    _Atomic int64_t turn_at_ns;  /* when this turn's poll returned; 0: it is in the poll */
    _Atomic(const char *) doing; /* the task type or handler that runs in this turn */
    struct histogram turn;       /* from the end of the poll to the end of the turn */
    struct histogram queue_wait; /* of the tasks that carry a time */
};

/* Add ${n} to a counter of one's own. */
#define TELEMETRY_ADD(counter, n)                                                       \
    atomic_store_explicit(&(counter),                                                   \
                          atomic_load_explicit(&(counter), memory_order_relaxed) + (n), \
                          memory_order_relaxed)

#define TELEMETRY_SET(field, value) atomic_store_explicit(&(field), (value), memory_order_relaxed)
#define TELEMETRY_GET(field)        atomic_load_explicit(&(field), memory_order_relaxed)

#endif
