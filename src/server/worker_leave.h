/* server/worker_leave: ends the sessions of removed listeners, longest idle first. */
#ifndef SERVER_WORKER_LEAVE_H
#define SERVER_WORKER_LEAVE_H

#include <stdbool.h>

struct list;
struct session;

/*
 * worker_leave_applies(s):
 * True if the listener of ${s} was removed, and its end is not set yet.
 *
 * Thread: loop of ${s}
 */
bool worker_leave_applies(const struct session *s);

/*
 * worker_leave(sessions):
 * Spread the ends of sessions whose listener was removed over the time that they have left.
 *
 * Thread: loop of the sessions
 */
void worker_leave(struct list *sessions);

#endif
