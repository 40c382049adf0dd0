/*
 * stats/history: what counters gained in the last hours, in rings of several resolutions.
 *
 *   resolution   1 s    10 s   60 s   10 min        for the process, each listener, upstream and
 *   for          5 min  1 h    1 day  7 days        loop; as far back as [admin] history says
 *
 * A round once a second: begin -> show each object to history_visitor() -> end. A ring is made when
 * its figure is first not 0, so an idle object costs little; without memory for it the figure, or
 * the object, begins later, and history_is_short(). Objects that a round did not show are freed.
 *
 * A sample is what was gained since the sample before. After a pause of the process its seconds are
 * a gap, and the sample behind is the average of the pause.
 *
 * All functions but history_write(): owner's thread.
 */
#ifndef STATS_HISTORY_H
#define STATS_HISTORY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/must.h"
#include "stats/figure.h"

struct history;
struct text;

#define HISTORY_LEVELS 4

/* Of all objects and rings: 7 days of some 150 busy listeners and upstreams. */
#define HISTORY_MAX_BYTES (64 << 20)

/*
 * history_create(out, max_bytes) / history_destroy(h):
 * Create a history of at most ${max_bytes} besides that of the process, which keeps nothing yet /
 * free it; NULL is allowed.
 *
 * Errors: 0; -ENOMEM
 */
int history_create(struct history **out, size_t max_bytes) NODISCARD;
void history_destroy(struct history *h);

/* history_keep(h, ns): keep samples of the last ${ns}; 0: none. Those that it has stay. */
void history_keep(struct history *h, int64_t ns);

/*
 * history_begin(h, now_ns, sessions, byte_rounds) / history_visitor(h) / history_end(h):
 * Begin a round: ${sessions} are open in the process, and bytes of open sessions were counted, 0:
 * not this time, or for the last ${byte_rounds} rounds / the visitor for listeners, upstreams,
 * loops and connects of servers / end the round.
 */
void history_begin(struct history *h, int64_t now_ns, uint64_t sessions, unsigned byte_rounds);
struct figure_visitor *history_visitor(struct history *h);
void history_end(struct history *h);

/* history_is_short(h): was there no memory for a ring or an object in the last round? */
bool history_is_short(const struct history *h);

/* history_bytes(h): memory of objects and rings. */
size_t history_bytes(const struct history *h);

struct history_query {
    enum figure_subject subject; /* FIGURE_PROCESS, _LISTENER, _UPSTREAM or _LOOP */
    const char *name;            /* NULL: FIGURE_PROCESS */
    unsigned level;              /* 0: the finest */
    uint64_t after;              /* only samples behind this one */
};

/* history_level(h, step_s): the level with samples of ${step_s}; -1: none is kept. */
int history_level(const struct history *h, unsigned step_s);

/*
 * history_json(h, query, now_ns, out):
 * Append the samples of an object as members of a JSON object; false: there is no such object.
 */
bool history_json(const struct history *h, const struct history_query *query, int64_t now_ns,
                  struct text *out);

/*
 * history_write(h, f) / history_read(h, record, n, now_ns):
 * Write all samples, and the counters that they go on from, for the process that replaces this one,
 * which continues the counters / use them in ${h}, which must have no sample yet.
 *
 * Thread: any, the owner waits meanwhile / owner
 * Owns:   history_read() cuts the ${n} bytes of ${record}, which a NUL follows, into words
 * Errors: 0; -EINVAL (${record} is not complete, or wrong); -ENOMEM. ${h} is empty after an error
 */
void history_write(struct history *h, FILE *f);
int history_read(struct history *h, char *record, size_t n, int64_t now_ns) NODISCARD;

/* history_json_objects(h, out): append what is kept, as members of a JSON object. */
void history_json_objects(const struct history *h, struct text *out);

#endif
