/*
 * service/session_move: takes an open session from one loop to another, with its channels, pending
 * bytes, handlers, timers and the state of its access log.
 */
#ifndef SERVICE_SESSION_MOVE_H
#define SERVICE_SESSION_MOVE_H

#include <stdbool.h>

#include "base/must.h"

struct loop;
struct session;
struct session_owner;

/*
 * session_may_move(s):
 * Can ${s} leave its loop now? It is open, none of its channels ends, and its handlers allow it.
 *
 * Thread: loop of ${s}, not in a callback of ${s}
 */
bool session_may_move(const struct session *s);

/*
 * session_leave_loop(s) / session_join_loop(s, owner):
 * Take ${s}, which may move, off its loop / serve it on the loop of ${owner}, which can
 * watch its descriptors. Until then there are no other calls.
 *
 * Thread: loop of ${s} / of ${owner}
 * Errors: 0; -ENOMEM (a channel of ${s} is aborted, and ${s} stays)
 */
int session_leave_loop(struct session *s) NODISCARD;
void session_join_loop(struct session *s, struct session_owner *owner);

#endif
