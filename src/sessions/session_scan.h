/*
 * sessions/session_scan: visits the sessions of all workers, in steps, and tells the asking loop
 * when all are visited.
 *
 *   begin -> each worker: task, task ... -> the last one submits: done() on the asking loop
 *
 * A step visits SESSION_SET_STEP sessions, fewer if they take longer than BUDGET_STEP_NS.
 * Sessions adopted after the begin of a worker's part are not visited.
 */
#ifndef SESSIONS_SESSION_SCAN_H
#define SESSIONS_SESSION_SCAN_H

#include <stdbool.h>

#include "base/must.h"

struct loop_group;
struct session;
struct worker;

/* The workers whose sessions are visited. */
struct session_scan_workers {
    struct loop_group *loops;
    struct worker **list; /* by loop number */
};

struct session_scan_ops {
    /*
     * On a worker's loop: visit ${s}, which may be ending already. True if the visit was expensive,
     * for example because it ended ${s}. ${part}: number of the worker, below session_scan_parts().
     */
    bool (*visit)(void *cookie, unsigned part, struct session *s);
    /* On the asking loop: all parts have ended. */
    void (*done)(void *cookie);
    /* visit() moves sessions to other loops: others may be visited twice, or not at all. */
    bool moves;
    /* On any thread, instead of done(): the asking loop has ended. */
    void (*lost)(void *cookie);
};

/*
 * session_scan_parts(workers):
 * Number of workers, each a part of a scan: maximum for ${n_parts} of session_scan_begin().
 */
unsigned session_scan_parts(const struct session_scan_workers *workers);

/*
 * session_scan_begin(workers, n_parts, ops, cookie):
 * Begin a scan. Exactly one of done() and lost() follows, not inside this call; both may free what
 * ${cookie} points at.
 *
 * Thread: any loop; it is the asking loop
 * Owns:   what ${workers} points at, and ${ops}, must live until done() or lost()
 * Errors: 0; -ENOMEM; -ESHUTDOWN (the asking loop takes no more tasks)
 */
int session_scan_begin(const struct session_scan_workers *workers, unsigned n_parts,
                       const struct session_scan_ops *ops, void *cookie) NODISCARD;

#endif
