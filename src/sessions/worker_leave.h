/*
 * sessions/worker_leave: ends the sessions of removed listeners, longest idle first.
 *
 * First each session gets the same end, listener_generation_leave_by_ns(), which needs no memory.
 * Then, if there is memory, the ends are spread over the time until that instant.
 */
#ifndef SESSIONS_WORKER_LEAVE_H
#define SESSIONS_WORKER_LEAVE_H

#include <stdbool.h>

struct session;
struct session_scan_workers;

/*
 * worker_leave_at_last(s):
 * If the listener of ${s} was removed, and ${s} has no earlier end: let ${s} end at
 * listener_generation_leave_by_ns(), and return true.
 *
 * Thread: loop of ${s}
 */
bool worker_leave_at_last(struct session *s);

/*
 * worker_leave_spread(workers):
 * Begin to spread the ends of the sessions for which worker_leave_at_last() was true.
 *
 * Thread: control loop
 * Owns:   as session_query_begin()
 */
void worker_leave_spread(const struct session_scan_workers *workers);

#endif
