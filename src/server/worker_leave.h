/*
 * server/worker_leave: ends the sessions of removed listeners, longest idle first.
 *
 * Each session may stay until the last instant at first, which needs no memory; then the ends are
 * spread over the time before it, if there is memory for that.
 */
#ifndef SERVER_WORKER_LEAVE_H
#define SERVER_WORKER_LEAVE_H

#include <stdbool.h>

struct session;
struct session_scan_workers;

/*
 * worker_leave_at_last(s):
 * If the listener of ${s} was removed, and its end is not set yet: end it at the last instant, and
 * return true.
 *
 * Thread: loop of ${s}
 */
bool worker_leave_at_last(struct session *s);

/*
 * worker_leave_spread(workers):
 * Begin to spread the ends of sessions that worker_leave_at_last() was true for.
 *
 * Thread: control loop
 * Owns:   what ${workers} points at must outlive the workers' loops
 */
void worker_leave_spread(const struct session_scan_workers *workers);

#endif
