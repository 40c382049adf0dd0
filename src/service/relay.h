/*
 * service/relay: the tail of a pipeline; it writes what it reads to another channel.
 *
 * Echo is one relay to its own channel, a proxied session two that cross. Above the destination's
 * high water mark the source is paused; end of file follows the last byte; large reads are spliced;
 * the listener's bandwidths are applied (limits/throttle).
 */
#ifndef SERVICE_RELAY_H
#define SERVICE_RELAY_H

#include "base/must.h"
#include "net/channel.h"
#include "service/session.h"

/* Placed right behind its channel; see note: layout in net/channel.h. */
struct relay {
    struct channel *to;
    struct handler handler;
    struct session *session;
    struct throttle *throttle; /* of reads; NULL: none */
};

/*
 * relay_init(r, session, from, to):
 * Make ${r} the tail of ${from}'s pipeline, writing to ${to}. Both channels are initialised. If
 * ${r} is the tail already, the handlers before it stay.
 *
 * Thread: loop of ${session}
 * Owns:   ${r} must live as long as ${from}
 * Errors: none; without memory for a throttle ${from} is aborted
 */
void relay_init(struct relay *r, struct session *session, struct channel *from, struct channel *to);

/*
 * relay_tell_first(r):
 * Call service_ops.first_byte() for the first bytes, which are not spliced. Call it between
 * relay_init() and channel_start().
 *
 * Thread: loop of the session
 */
void relay_tell_first(struct relay *r);

/*
 * relay_undo(r, from):
 * Undo relay_init() when ${from} or its destination is closed: leave the queue for bandwidth.
 * ${from} is not read until the next relay_init().
 *
 * Thread: loop of the session
 */
void relay_undo(struct relay *r, struct channel *from);

#endif
