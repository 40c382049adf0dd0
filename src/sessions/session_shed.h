/*
 * sessions/session_shed: ends a share of the sessions at an upstream or server, idlest first,
 * evenly over a time: their clients connect again elsewhere.
 *
 *   list all -> choose the idlest -> each gets an instant (session_leave_by)
 *
 * All is done in steps: the workers list in one scan, the asking loop sorts, the workers set
 * instants in another scan. Each session ends at its instant, or before by itself, so there is
 * nothing to cancel.
 */
#ifndef SESSIONS_SESSION_SHED_H
#define SESSIONS_SESSION_SHED_H

#include <stdint.h>

#include "base/must.h"
#include "sessions/session_filter.h"

struct session;
struct session_scan_workers;

struct session_shed_conf {
    struct session_filter filter;
    unsigned percent; /* 1 to 100, rounded up to whole sessions */
    int64_t over_ns;  /* sessions end within it */
    /*
     * On a worker's loop, instead of filter and over_ns: returns the latest end of ${s}, or
     * CLOCK_NEVER if ${s} stays. NULL: use filter and over_ns.
     */
    int64_t (*leave_by_ns)(const struct session *s);
    /* Called once on the asking loop, unless that has ended. ${n}: sessions to end; -ENOMEM. */
    void (*answered)(void *cookie, int64_t n);
    void *cookie;
};

/*
 * session_shed_begin(workers, conf):
 * End a share of the selected, connected sessions within over_ns from now, as a timeout does, with
 * the reason SESSION_DRAIN. Sessions whose lifetime ends within over_ns anyway do not count.
 *
 * Thread: any loop; it is the asking loop
 * Owns:   as session_query_begin()
 * Errors: as session_scan_begin()
 */
int session_shed_begin(const struct session_scan_workers *workers,
                       const struct session_shed_conf *conf) NODISCARD;

#endif
