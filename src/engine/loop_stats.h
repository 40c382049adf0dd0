/*
 * engine/loop_stats: a loop's counters.
 */
#ifndef ENGINE_LOOP_STATS_H
#define ENGINE_LOOP_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "engine/histogram.h"

struct loop;

struct loop_stats {
    unsigned connections;
    uint64_t turns;
    uint64_t turns_empty; /* nothing ran */
    uint64_t polls_blocking;
    uint64_t io_events;
    uint64_t tasks_run;
    uint64_t tasks_dropped;
    uint64_t tasks_rejected;
    uint64_t tasks_pending;
    uint64_t wakeups_sent;  /* each by a system call */
    uint64_t wakeups_saved; /* tasks of other threads that needed no system call */
    uint64_t rebuilds;
    uint64_t stalls;
    int64_t poll_ns;
    int64_t io_ns;
    int64_t task_ns;
    unsigned io_ratio;            /* in use, in percent */
    const char *io_ratio_reason;  /* fixed: as set; else see engine/io_tune */
    int64_t queue_wait_judged_ns; /* at the last look of engine/io_tune; 0: none */
    unsigned io_ratio_achieved;   /* io_ns in percent of io_ns + task_ns; 100 if both are 0 */
    int64_t oldest_ns;            /* age of the oldest waiting task, or slightly more */
    /* longest task; tasks of one type between two readings of the clock count as one task */
    int64_t longest_ns;
    const char *longest_name; /* NULL: no task has run */
    int64_t turn_ns;          /* age of the current turn; 0: polling */
    const char *doing;
    struct histogram_view turn;
    /* waits of tasks that found the queue empty, and of 1 in 64 others */
    struct histogram_view queue_wait;
};

/* loop_stats(loop, out): copy the counters. Each is exact, but not all are of one instant. */
void loop_stats(const struct loop *loop, struct loop_stats *out);

/*
 * loop_stats_busy_ns(s):
 * Time outside the poll since the start. A turn that ends meanwhile may be counted twice: between
 * two calls a loop is busy for the time between them at most.
 */
static inline int64_t loop_stats_busy_ns(const struct loop_stats *s)
{
    return (int64_t)s->turn.ns + s->turn_ns;
}

#endif
