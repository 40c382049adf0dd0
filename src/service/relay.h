/*
 * service/relay: pipeline tail that writes the bytes it reads to another channel.
 *
 * An echo has one relay, to its own channel; a proxied session has one in each direction. A relay
 * pauses its source while the destination is above the high water mark, splices large reads and
 * applies bandwidth limits (limits/throttle).
 */
#ifndef SERVICE_RELAY_H
#define SERVICE_RELAY_H

#include "base/must.h"
#include "net/channel.h"
#include "service/session.h"

struct session_state_leg;

/* A relay, placed right behind its channel; see note: layout in net/channel.h. */
struct relay {
    struct channel *to;
    struct handler handler;
    struct session *session;
    struct throttle *throttle; /* limits reads; NULL: no limit */
};

/*
 * relay_init(r, session, from, to):
 * Make ${r}, which writes to ${to}, the tail of ${from}'s pipeline. A repeated call keeps the
 * handlers before ${r}. Without memory for a throttle, abort ${from}.
 *
 * Thread: loop of ${session}
 * Owns:   ${r} must live as long as ${from}
 */
void relay_init(struct relay *r, struct session *session, struct channel *from, struct channel *to);

/*
 * relay_tell_first(r):
 * Call service_ops.first_byte() when ${r} reads its first bytes; they are not spliced. Call this
 * before channel_start().
 *
 * Thread: loop
 */
void relay_tell_first(struct relay *r);

/*
 * relay_tells_first(r): is the call of relay_tell_first() still to come? Thread: loop
 *
 * relay_save_limits(r, leg) / relay_limit(r, leg):
 * Write the state of the bandwidth limits of ${r} to ${leg} / limit the bandwidth by those of its
 * service, from the state in ${leg} on.
 *
 * Thread: loop
 * Errors: 0; -ENOMEM
 */
bool relay_tells_first(const struct relay *r);
void relay_save_limits(const struct relay *r, struct session_state_leg *leg);
int relay_limit(struct relay *r, const struct session_state_leg *leg) NODISCARD;

/* relay_carry_over(r): use the bandwidth limits of the session's new service. Thread: loop */
void relay_carry_over(struct relay *r);

/*
 * relay_undo(r, from):
 * Undo relay_init() after a channel of ${r} is closed. ${from} must be closed or paused until the
 * next relay_init().
 *
 * Thread: loop
 */
void relay_undo(struct relay *r, struct channel *from);

#endif
