/*
 * service/mirror: a copy of what clients send, to a second upstream whose answers nobody hears.
 *
 *   client -> handlers -> [mirror] -> the service, as without it
 *                             \-> at most `buffer_bytes` that wait -> a server of the mirror
 *
 * A mirror is never waited for. What it cannot take in time is lost, and then everything behind it,
 * for a stream with a gap means nothing: the connection to the mirror is reset. Servers that cannot
 * be reached, or a lack of memory or descriptors, only mean that this client is not mirrored. All
 * of it is counted.
 *
 * A mirror has memory of its own, which lives until both the client's channel and its own are
 * closed; all on one loop. When the client has ended, what waits is still sent, within the
 * listener's `linger` bounds. A stream that was cut ends in a reset.
 */
#ifndef SERVICE_MIRROR_H
#define SERVICE_MIRROR_H

#include <stdatomic.h>
#include <stdint.h>

struct channel;
struct session;
struct upstream;

/* A listener's; the counters are relaxed, written once a client, and read by anyone. */
struct mirror_plan {
    struct upstream *upstream;
    unsigned
        buffer_bytes; /* that may wait for one client's mirror, also while it is being connected */
    _Atomic uint64_t connected;
    _Atomic uint64_t failed;    /* could not be connected, or not be tried */
    _Atomic uint64_t abandoned; /* was too slow, or ended before its client */
    _Atomic uint64_t cut;       /* reset because its client's stream was cut */
    _Atomic uint64_t bytes;     /* that it got */
    _Atomic uint64_t lost;      /* that it did not */
};

/*
 * mirror_add(s, ch):
 * Mirror what comes from the client of ${s}, behind the handlers that ${ch} has now. Its server is
 * chosen when ${ch} becomes active.
 *
 * Thread: loop of ${s}
 * Owns:   the mirror frees itself
 * Errors: none; without memory the client is not mirrored
 */
void mirror_add(struct session *s, struct channel *ch);

/*
 * mirror_log_stats(plan, listener):
 * Write what was counted to the log, at notice level.
 *
 * Thread: any
 */
void mirror_log_stats(const struct mirror_plan *plan, const char *listener);

#endif
