/*
 * service/mirror: copies the clients' bytes to a second upstream, and discards its answers.
 *
 *   client -> handlers -> [mirror] -> the service, as without it
 *                             \-> at most `buffer_bytes` -> a server of the mirror
 *
 * The client never waits for the mirror. A full buffer resets the mirror. Without a server, memory
 * or descriptors there is no copy. All are counted.
 *
 * A mirror is freed when both its channel and the client's are closed. After the client's end,
 * buffered bytes are sent within the listener's `linger`; a cut stream ends in a reset.
 */
#ifndef SERVICE_MIRROR_H
#define SERVICE_MIRROR_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/must.h"

struct channel;
struct session;
struct upstream;

/* Of a listener and its mirrors, which may outlive it; relaxed, updated once per client. */
struct mirror_counters {
    atomic_uint references;
    _Atomic uint64_t connected;
    _Atomic uint64_t failed;    /* not connected, or not tried */
    _Atomic uint64_t abandoned; /* too slow, or ended before the client */
    _Atomic uint64_t cut;       /* reset, as the client's stream was cut */
    _Atomic uint64_t bytes;     /* sent to the mirror */
    _Atomic uint64_t lost;      /* not sent to the mirror */
};

struct mirror_plan {
    struct upstream *upstream;
    unsigned buffer_bytes; /* per client, also while connecting */
    struct mirror_counters *counters;
};

/*
 * mirror_counters_create(out) / mirror_counters_release(c):
 * Create them with a reference; give up one. The last frees them.
 *
 * Thread: any
 * Errors: 0; -ENOMEM
 */
int mirror_counters_create(struct mirror_counters **out) NODISCARD;
void mirror_counters_release(struct mirror_counters *c);

/*
 * mirror_add(s, ch):
 * Mirror the client of ${s}, behind the handlers that ${ch} has now. The server is chosen when
 * ${ch} becomes active.
 *
 * Thread: loop of ${s}
 * Owns:   the mirror frees itself
 */
void mirror_add(struct session *s, struct channel *ch);

/*
 * mirror_log_stats(c, listener):
 * Log the counters at notice level.
 *
 * Thread: any
 */
void mirror_log_stats(const struct mirror_counters *c, const char *listener);

#endif
