/* sessions/session_row: what is shown of a session: a copy that any thread may read. */
#ifndef SESSIONS_SESSION_ROW_H
#define SESSIONS_SESSION_ROW_H

#include <stdint.h>

#include "base/must.h"
#include "net/address.h"
#include "stats/session_id.h"

struct session;

struct session_row {
    int64_t rank; /* sort key of the caller */
    struct session_id id;
    struct address client;
    const char *listener;
    const char *upstream; /* NULL: no upstream chosen */
    const char *server;   /* NULL: no server chosen */
    const char *loop;
    const char *state;
    int64_t age_ns;
    int64_t idle_ns; /* since the last byte in any direction */
    uint64_t bytes_in, bytes_out;
    int64_t load_us; /* time of its loop in the last whole second; -1: not measured */
    char text[];
};

/*
 * session_row_create(out, s, now_ns):
 * Copy what is shown of ${s} at ${now_ns}, which may be earlier than the last byte of ${s}. `state`
 * is one of
 *
 *   header      waits for the PROXY header
 *   hello       waits for a ClientHello, TLS handshake or SSLRequest
 *   connecting  connects to a server, or waits for one
 *   open
 *   draining    ends when it is finished, at the latest by a timeout
 *   closing     sends the remaining bytes
 *
 * Thread: loop of ${s}
 * Owns:   the caller frees ${out} by free()
 * Errors: 0; -ENOMEM
 */
int session_row_create(struct session_row **out, struct session *s, int64_t now_ns) NODISCARD;

#endif
