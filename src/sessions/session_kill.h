/* sessions/session_kill: resets the sessions that a filter selects, at the command of an admin. */
#ifndef SESSIONS_SESSION_KILL_H
#define SESSIONS_SESSION_KILL_H

#include <stdint.h>

#include "base/must.h"

struct session_filter;
struct session_scan_workers;

/*
 * session_kill_begin(workers, filter, answered, cookie):
 * Reset both sides of the selected sessions, in steps, with the reason SESSION_KILLED. Then call
 * answered(cookie, number of sessions) as session_query_begin() does.
 *
 * Thread: any loop; it is the asking loop
 * Owns:   ${filter} is copied; ${workers}: as session_query_begin()
 * Errors: as session_scan_begin()
 */
int session_kill_begin(const struct session_scan_workers *workers,
                       const struct session_filter *filter,
                       void (*answered)(void *cookie, uint64_t n), void *cookie) NODISCARD;

#endif
