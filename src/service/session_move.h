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

/* Why a session cannot leave its loop now. */
enum session_obstacle {
    SESSION_OBSTACLE_NONE,
    SESSION_OBSTACLE_PREFACE,    /* its first bytes are not complete */
    SESSION_OBSTACLE_CONNECTING, /* or it waits for a server */
    SESSION_OBSTACLE_BUSY,       /* a channel ends, or another thread works for a handler */
    SESSION_OBSTACLE_CLOSING,
    SESSION_OBSTACLES
};

/*
 * session_obstacle(s) / session_may_move(s):
 * Return what keeps ${s} on its loop / can ${s} leave it: it is open, none of its channels ends,
 * and its handlers allow it?
 *
 * Thread: loop of ${s}, not in a callback of ${s}
 */
enum session_obstacle session_obstacle(const struct session *s);
bool session_may_move(const struct session *s);

/* session_obstacle_name(obstacle): return `connecting`, `failed` for none. */
const char *session_obstacle_name(enum session_obstacle obstacle);

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
