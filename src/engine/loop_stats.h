/*
 * engine/loop_stats: a loop's counters, for whoever wants to know how it fares.
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
    uint64_t turns_empty; /* in which nothing ran */
    uint64_t polls_blocking;
    uint64_t io_events;
    uint64_t tasks_run;
    uint64_t tasks_dropped;
    uint64_t tasks_rejected; /* refused to their submitters */
    uint64_t tasks_pending;
    uint64_t wakeups_sent;  /* system calls */
    uint64_t wakeups_saved; /* tasks of other threads that needed none */
    uint64_t rebuilds;
    uint64_t stalls;
    int64_t poll_ns;
    int64_t io_ns;
    int64_t task_ns;
    unsigned io_ratio; /* configured, percent */
    unsigned
        io_ratio_achieved; /* io_ns of io_ns + task_ns, percent; 100 when there were no tasks */
    int64_t oldest_ns;     /* how long the oldest waiting task has waited, at most */
    int64_t
        longest_ns; /* the longest task, or some of one type between two readings of the clock */
    const char *longest_name; /* NULL: none yet */
    int64_t turn_ns;          /* how long the present turn has lasted; 0: it is in the poll */
    const char *doing;        /* what runs in it */
    struct histogram_view turn;
    struct histogram_view
        queue_wait; /* each task that found the lane empty, and one in 64 of the others */
};

/*
 * loop_stats(loop, out):
 * A reading of the loop's counters, each exact, together not of one instant.
 *
 * Thread: any
 */
void loop_stats(const struct loop *loop, struct loop_stats *out);

/*
 * loop_stats_log(loop):
 * Write them to the log at notice level, in lines `stats NAME key=value ...`.
 *
 * Thread: any
 */
void loop_stats_log(const struct loop *loop);

#endif
