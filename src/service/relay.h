/*
 * service/relay: the tail of a pipeline that writes all it gets to a channel.
 *
 * Echo is one relay back to its own channel, a proxied session two that cross. The relay keeps the
 * two sides coupled: when the destination is above its high water mark the source is paused, end of
 * file follows the last byte, and large reads are spliced. It also keeps to the listener's
 * bandwidths (limits/throttle).
 */
#ifndef SERVICE_RELAY_H
#define SERVICE_RELAY_H

#include "base/must.h"
#include "net/channel.h"
#include "service/session.h"

/*
 * The session puts it right behind the channel it is the tail of; see note: layout in
 * net/channel.h.
 */
struct relay {
    struct channel *to;
    struct handler handler;
    struct session *session;
    struct throttle *throttle; /* of what is read; NULL: none */
};

/*
 * relay_init(r, session, from, to):
 * Make ${r} the tail of ${from}'s pipeline, and ${to} where its bytes go. Both channels are
 * initialised. If the handler of ${r} is the tail already, those before it stay.
 *
 * Thread: loop of ${session}
 * Owns:   nothing; ${r} must live as long as ${from}
 * Errors: none; without memory for a throttle ${from} is aborted
 */
void relay_init(struct relay *r, struct session *session, struct channel *from, struct channel *to);

/*
 * relay_tell_first(r):
 * Call service_ops.first_byte() for the first bytes that come, which are not spliced. It costs
 * nothing for those behind them. To be called between relay_init() and channel_start().
 *
 * Thread: loop of the session
 */
void relay_tell_first(struct relay *r);

/*
 * relay_undo(r, from):
 * What relay_init() did for reading ${from}, whose other end is closed or which is closed itself,
 * is no longer so: its turn at the bandwidths is given up. Nothing is read of it before
 * relay_init() is called again.
 *
 * Thread: loop of the session
 */
void relay_undo(struct relay *r, struct channel *from);

#endif
