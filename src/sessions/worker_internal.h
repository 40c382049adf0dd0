/* sessions/worker_internal: struct worker, for worker.c and worker_handover.c. */
#ifndef SESSIONS_WORKER_INTERNAL_H
#define SESSIONS_WORKER_INTERNAL_H

#include "base/log.h"
#include "engine/visit.h"
#include "service/session.h"
#include "sessions/session_set.h"
#include "sessions/worker.h"

struct worker {
    struct session_owner owner;
    struct worker_env env;
    struct session_set sessions;
    struct session_set_walk drained, stopped;
    struct visit drain;
    struct visit_part draining;
    struct task stop;
    struct task give_back;
    atomic_bool giving_back; /* give_back is queued */
    struct log_limit memory_limit;
};

/*
 * worker_forget(w, s) / worker_welcome(w, s):
 * Take ${s} out of the sessions of ${w} / tell ${s}, which has come to ${w}, what others were told
 * before.
 *
 * Thread: loop of ${w}
 */
void worker_forget(struct worker *w, struct session *s);
void worker_welcome(struct worker *w, struct session *s);

#endif
