/*
 * sessions/session_transfer: moves the sessions that a filter selects to one worker, at the command
 * of an admin.
 */
#ifndef SESSIONS_SESSION_TRANSFER_H
#define SESSIONS_SESSION_TRANSFER_H

#include <stdint.h>

#include "base/must.h"

struct loop;
struct session_filter;
struct session_scan_workers;

struct session_transfer_result {
    uint64_t moved;
    uint64_t there;  /* sessions that the worker had before */
    uint64_t busy;   /* see session_may_move() */
    uint64_t failed; /* no memory, or the worker takes no sessions now */
};

struct session_transfer_conf {
    const struct session_filter *filter;
    struct loop *to;
    /* As in struct session_query_conf. */
    void (*answered)(void *cookie, const struct session_transfer_result *result);
    void *cookie;
};

/*
 * session_transfer_begin(workers, conf):
 * Move the selected sessions to the loop ${conf}->to, in steps. While a visit of all sessions holds
 * moves off, it tries again.
 *
 * Thread: any loop; it is the asking loop
 * Owns:   the filter is copied; ${workers}: as session_query_begin()
 * Errors: as session_scan_begin()
 */
int session_transfer_begin(const struct session_scan_workers *workers,
                           const struct session_transfer_conf *conf) NODISCARD;

#endif
