/*
 * upgrade/session_handoff: after an upgrade the new process takes the open sessions of the old one.
 *
 *   old: offer (a socket pair, one end by the hand-over socket) -> WANT -> export -> drain the rest
 *   new: take (that end) -> WANT, if upgrade_sessions -> import
 *
 * A new process that wants none, or knows nothing of this, closes its end.
 */
#ifndef UPGRADE_SESSION_HANDOFF_H
#define UPGRADE_SESSION_HANDOFF_H

#include <stdbool.h>

#include "base/must.h"

struct handoff_figures;
struct server;
struct session_handoff;

/*
 * session_handoff_create(out, sv) / session_handoff_destroy(h):
 * Create it, with no hand-off under way / free ${h}, after server_stop(); NULL is allowed.
 *
 * Owns:   ${sv} must outlive ${out}
 * Errors: 0; -ENOMEM, -EMFILE, -ENFILE
 */
int session_handoff_create(struct session_handoff **out, struct server *sv) NODISCARD;
void session_handoff_destroy(struct session_handoff *h);

/*
 * session_handoff_fd(h) / session_handoff_step(h):
 * Descriptor that is readable when session_handoff_step() has work / do it.
 */
int session_handoff_fd(const struct session_handoff *h);
void session_handoff_step(struct session_handoff *h);

/*
 * session_handoff_offer(h, fd):
 * Offer the sessions to the process at the hand-over socket ${fd}. The server drains what stays.
 */
void session_handoff_offer(struct session_handoff *h, int fd);

/*
 * session_handoff_take(h, fd, rate):
 * Take sessions, ${rate} a second, from ${fd}; 0: none.
 *
 * Owns:   takes ${fd}
 */
void session_handoff_take(struct session_handoff *h, int fd, unsigned rate);

/* session_handoff_is_under_way(h): are sessions being handed over, in one direction? */
bool session_handoff_is_under_way(const struct session_handoff *h);

/* session_handoff_figures(h, out): the figures of the last hand-off; zero without one. */
void session_handoff_figures(const struct session_handoff *h, struct handoff_figures *out);

/* session_handoff_stop(h): end the hand-off; call it before server_stop(). */
void session_handoff_stop(struct session_handoff *h);

#endif
