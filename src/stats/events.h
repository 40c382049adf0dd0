/*
 * stats/events: the last events of the process, as their log lines told them.
 *
 *   log_event() -> events_sink() -> the last EVENTS_MAX events -> events_json()
 *
 * A line that is repeated, such as one for refused clients, is one event with its number of lines:
 * it moves to the end, with a new ID, as long as a line comes within a minute. Commands and lines
 * about servers that come too fast fold to one event in the same way. Commands, notices, warnings
 * and what concerns the process have a share each that the others cannot take away.
 */
#ifndef STATS_EVENTS_H
#define STATS_EVENTS_H

#include <stdint.h>
#include <stdio.h>

#include "base/log.h"
#include "base/must.h"

struct events;
struct text;

#define EVENTS_MAX 500

/*
 * events_create(out) / events_destroy(ev):
 * Create a ring, whose memory does not grow later / free it; NULL is allowed.
 *
 * Errors: 0; -ENOMEM
 */
int events_create(struct events **out) NODISCARD;
void events_destroy(struct events *ev);

/* events_sink(ev): return the sink for log_set_events(). */
const struct log_event_sink *events_sink(struct events *ev);

/*
 * events_json(ev, after, max, out):
 * Append members of a JSON object: the last ${max} events with an ID above ${after}, the oldest
 * first, the last ID, and the series that IDs belong to. An ID that was not given yet counts as 0:
 * it is of another series.
 */
void events_json(struct events *ev, uint64_t after, unsigned max, struct text *out);

/*
 * events_write(ev, f) / events_read(ev, text):
 * Write all events, for the process that replaces this one / put those in ${text} before what
 * ${ev} has, and go on with their series.
 *
 * Errors: 0; -EINVAL (${text} is not complete, or wrong: nothing is changed)
 */
void events_write(struct events *ev, FILE *f);
int events_read(struct events *ev, const char *text) NODISCARD;

#endif
