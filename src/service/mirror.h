/*
 * service/mirror: copies a client's bytes to a server of another upstream, and discards that
 * server's answers.
 *
 *   client -> handlers -> [mirror] -> the service, unchanged
 *                             \-> buffer of `buffer_bytes` -> a server of the mirror
 *
 * The client never waits for the mirror. A full buffer resets the mirror's connection. Without a
 * server, memory or descriptors the client is not mirrored. All of this is counted.
 *
 * A mirror is freed when both its channel and the client's are closed. After the client's end,
 * buffered bytes are sent within the listener's `linger`; if the client's stream was cut, the
 * mirror's connection is reset.
 */
#ifndef SERVICE_MIRROR_H
#define SERVICE_MIRROR_H

#include <stdint.h>

#include "base/ref.h"
#include "base/must.h"

struct channel;
struct figure_object;
struct figure_visitor;
struct session;
struct upstream;

struct counters_set;

/*
 * Counters of a listener's mirrors, relaxed. Each mirror holds a reference, because it may outlive
 * the listener.
 */
struct mirror_counters {
    struct ref references;
    _Atomic uint64_t connected;
    _Atomic uint64_t failed;    /* connect failed, or no server, memory or descriptor */
    _Atomic uint64_t abandoned; /* too slow, short of memory, or ended by the mirror's server */
    _Atomic uint64_t cut;       /* reset, because the client's stream was incomplete */
    _Atomic uint64_t bytes;
    _Atomic uint64_t lost; /* bytes not sent to the mirror */
};

struct mirror_plan {
    struct upstream *upstream;
    unsigned buffer_bytes; /* per client, also while connecting */
    struct mirror_counters *counters;
};

/*
 * mirror_counters_create(out) / mirror_counters_hold(c) / mirror_counters_release(c):
 * Create counters with one reference / add a reference and return ${c} / release one; the last
 * release frees ${c}.
 *
 * Errors: 0; -ENOMEM
 */
int mirror_counters_create(struct mirror_counters **out) NODISCARD;
struct mirror_counters *mirror_counters_hold(struct mirror_counters *c);
void mirror_counters_release(struct mirror_counters *c);

/*
 * mirror_add(s, ch):
 * Add a mirror to the pipeline of ${ch}, behind its present handlers. Its server is chosen when
 * ${ch} becomes active.
 *
 * Thread: loop of ${s}
 * Owns:   the mirror frees itself
 */
void mirror_add(struct session *s, struct channel *ch);

/* Figures of a live struct mirror_counters. */
extern const struct figure_table mirror_figures;

#endif
