/*
 * stats/counters: what is counted of the sessions of a listener, an upstream or a server, for
 * whoever watches them.
 *
 * Whoever has sessions embeds these, zeroed. They are written where a session begins and ends, so
 * per connection and never per byte, by any thread; any thread reads them. What a session moved is
 * added when it ends.
 *
 *   sessions that began = sessions that are open + sum of the ends by reason      (see note: sums)
 */
#ifndef STATS_COUNTERS_H
#define STATS_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/cache_line.h"
#include "engine/histogram.h"
#include "stats/session_reason.h"

/*
 * note: sums. A session's end is counted with release behind its beginning and its bytes, and a
 * reader takes the ends, with acquire, first. So it never sees an end without its beginning and its
 * bytes, and never fewer than no sessions open.
 */
struct counters {
    _Atomic uint64_t began; /* at a listener by the boss */
    char apart[CACHE_LINE_BYTES - sizeof(uint64_t)];
    _Atomic uint64_t bytes_in; /* from here on by workers */
    _Atomic uint64_t bytes_out;
    _Atomic uint64_t ended[SESSION_REASONS];
};

/* What a server has besides. */
struct counters_connects {
    _Atomic uint64_t failed;
    _Atomic uint64_t ns; /* that those which succeeded took, together */
    struct histogram time;
};

/* A reading. */
struct counters_view {
    uint64_t open;
    uint64_t began;
    uint64_t bytes_in;  /* from clients; of sessions that have ended */
    uint64_t bytes_out; /* to clients */
    uint64_t ended[SESSION_REASONS];
};

/*
 * counters_began(c):
 * One more session.
 *
 * Thread: any
 */
void counters_began(struct counters *c);

/*
 * counters_ended(c, reason, bytes_in, bytes_out):
 * A session has ended that counters_began() was called for, having received and sent so much from
 * and to its client.
 *
 * Thread: any
 */
void counters_ended(struct counters *c, enum session_reason reason, uint64_t bytes_in,
                    uint64_t bytes_out);

/*
 * counters_connected(c, ns) / counters_connect_failed(c):
 * A connection to the server was made, in so long; one could not be made.
 *
 * Thread: any
 */
void counters_connected(struct counters_connects *c, int64_t ns);
void counters_connect_failed(struct counters_connects *c);

/*
 * counters_read(c, out):
 * The counts now.
 *
 * Thread: any
 */
void counters_read(const struct counters *c, struct counters_view *out);

/*
 * counters_log(c, kind, name) / counters_log_connects(c, kind, name):
 * Write them to the log at notice level: `stats KIND NAME key=value ...`. Reasons are keys with `_`
 * for the blank, and only those that occurred are there.
 *
 * Thread: any
 */
void counters_log(const struct counters *c, const char *kind, const char *name);
void counters_log_connects(const struct counters_connects *c, const char *kind, const char *name);

#endif
