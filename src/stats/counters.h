/*
 * stats/counters: session counters of a listener, upstream or server.
 *
 * Embedded in their object and initially zero. Any thread may write and read them.
 *
 *   began = open + sum of `ended` + `moved`      (see note: sums)
 */
#ifndef STATS_COUNTERS_H
#define STATS_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/cache_line.h"
#include "engine/histogram.h"
#include "stats/session_reason.h"

struct figure_object;
struct figure_visitor;

/*
 * note: sums. A session's end is counted with release, after the session's begin and bytes; readers
 * load the ends first, with acquire. So readers see the begin and the bytes of each session whose
 * end they see, and `open` is never negative.
 */
struct counters {
    _Atomic uint64_t began; /* sessions begun; in a listener's counters the boss writes it */
    char apart[CACHE_LINE_BYTES - sizeof(uint64_t)];
    _Atomic uint64_t bytes_in; /* workers write this and the members below */
    _Atomic uint64_t bytes_out;
    _Atomic uint64_t ended[SESSION_REASONS];
    struct histogram duration; /* durations of the sessions counted by counters_lasted() */
    _Atomic uint64_t moved;    /* open sessions that another process serves on */
    _Atomic uint64_t taken;    /* sessions of another process that this one serves on */
    _Atomic uint64_t reported; /* sessions that others reported as begun and not as ended */
    uint64_t number;           /* of these counters, for counters_set_report(); 0: none yet */
};

struct counters_connects {
    _Atomic uint64_t failed;
    struct histogram time;       /* durations of the successful connects */
    struct histogram first_byte; /* from connected to the server's first byte */
};

struct counters_view {
    uint64_t open;
    uint64_t began;
    uint64_t bytes_in;  /* from clients; of open sessions only bytes of counters_moved() */
    uint64_t bytes_out; /* to clients */
    uint64_t ended[SESSION_REASONS];
    struct histogram_view duration;
};

/* counters_began(c): count the begin of a session. */
void counters_began(struct counters *c);

/*
 * counters_ended(c, reason, bytes_in, bytes_out):
 * Count the end and the bytes of a session, after counters_began().
 */
void counters_ended(struct counters *c, enum session_reason reason, uint64_t bytes_in,
                    uint64_t bytes_out);

/*
 * counters_handed_over(c) / counters_taken(c) / counters_not_taken(c):
 * Another process serves an open session of ${c} on, and counts its end / this process does so for
 * another, which tells the begin / it does not after all.
 */
void counters_handed_over(struct counters *c);
void counters_taken(struct counters *c);
void counters_not_taken(struct counters *c);

/*
 * counters_moved(c, bytes_in, bytes_out):
 * Count bytes of an open session; counters_ended() must not count them again.
 */
void counters_moved(struct counters *c, uint64_t bytes_in, uint64_t bytes_out);

/*
 * counters_lasted(c, ns):
 * Count the duration of a session that was served, before counters_ended().
 */
void counters_lasted(struct counters *c, int64_t ns);

/*
 * counters_connected(c, ns) / counters_connect_failed(c):
 * Count a connect that succeeded after ${ns} / that failed.
 */
void counters_connected(struct counters_connects *c, int64_t ns);
void counters_connect_failed(struct counters_connects *c);

/*
 * counters_first_byte(c, ns):
 * Count the first byte of a server, ${ns} after its connection could be used.
 */
void counters_first_byte(struct counters_connects *c, int64_t ns);

/* counters_read(c, out): read ${c}; see note: sums. */
void counters_read(const struct counters *c, struct counters_view *out);

/*
 * counters_figures(c, object, v) / counters_connects_figures(c, object, v):
 * Show ${v} the figures of the sessions of ${object} / of its connects.
 */
void counters_figures(const struct counters *c, const struct figure_object *object,
                      struct figure_visitor *v);
void counters_connects_figures(const struct counters_connects *c,
                               const struct figure_object *object, struct figure_visitor *v);

#endif
