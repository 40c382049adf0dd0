/* sessions/session_bytes: adds the bytes of open sessions to the counters before they are read. */
#ifndef SESSIONS_SESSION_BYTES_H
#define SESSIONS_SESSION_BYTES_H

#include <stdint.h>

#include "base/must.h"

struct session_scan_workers;

/*
 * session_bytes_begin(workers, limit_ns, done, cookie):
 * Add the bytes of all sessions, in steps. Then, or after ${limit_ns} if a worker does not answer,
 * call done(cookie) on the asking loop: once, and not inside this call.
 *
 * Thread: any loop; it is the asking loop
 * Owns:   as session_query_begin()
 * Errors: as session_scan_begin(); then done() is not called
 */
int session_bytes_begin(const struct session_scan_workers *workers, int64_t limit_ns,
                        void (*done)(void *cookie), void *cookie) NODISCARD;

#endif
