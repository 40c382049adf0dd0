/* sessions/worker: a loop and its sessions. */
#ifndef SESSIONS_WORKER_H
#define SESSIONS_WORKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"

struct memory_account;
struct move_gate;
struct descriptor_budget;
struct loop;
struct netloop;
struct service;
struct session;
struct session_set;
struct session_spares;
struct session_state;
struct worker;

struct worker_env {
    const atomic_bool *draining;
    struct move_gate *moves;               /* of the workers' loops */
    struct descriptor_budget *descriptors; /* shared by all workers; NULL: not counted */
    struct memory_account *buffered;       /* shared by all workers; NULL: not counted */
    /*
     * A session of ${service} has ended: called on the worker's loop, or on any thread if no worker
     * adopted the session.
     */
    void (*ended)(void *cookie, const struct service *service);
    void *cookie;
};

/*
 * worker_create(out, loop, env):
 * Prepare ${loop}, which has no thread yet, for sessions. The loop's shutdown aborts the sessions.
 *
 * Thread: control loop, or main before start
 * Owns:   ${loop} must outlive ${out}
 * Errors: 0; -ENOMEM
 */
int worker_create(struct worker **out, struct loop *loop, const struct worker_env *env) NODISCARD;

/*
 * worker_net(w) / worker_use_spares(w, spares):
 * Return the netloop of ${w} / set the spare connections of ${w}.
 *
 * Thread: control loop, or main before start
 * Owns:   ${spares} must live until replaced; NULL: none
 */
struct netloop *worker_net(const struct worker *w);
void worker_use_spares(struct worker *w, struct session_spares *spares);

/*
 * worker_hand_over(loop, s):
 * Give ${s} to the worker of ${loop}, before queued tasks.
 *
 * Owns:   on 0 the worker owns ${s}, and resets the client if the loop ends before it adopts ${s}
 * Errors: as loop_submit()
 */
int worker_hand_over(struct loop *loop, struct session *s) NODISCARD;

/*
 * worker_adopt(s):
 * As worker_hand_over(), at once, to the worker of the current loop.
 *
 * Thread: a worker's loop
 */
void worker_adopt(struct session *s);

/*
 * worker_drain(w):
 * Drain the sessions of ${w}; sessions adopted later are drained because of env->draining. Call it
 * once.
 *
 * Thread: main
 */
void worker_drain(struct worker *w);

/* How long a boss waits for workers to return lent descriptors. */
#define WORKER_GIVE_BACK_NS (2 * NS_PER_MS)

/*
 * worker_give_back_pipes(w):
 * Return the descriptors lent for pipes (note: lent pipes in net/pipe_pool.h).
 */
void worker_give_back_pipes(struct worker *w);

/* How often a visit tries moves that are held off (-EAGAIN) again, and the pause between. */
#define WORKER_MOVE_TRIES    50
#define WORKER_MOVE_PAUSE_NS (2 * NS_PER_MS)

/*
 * worker_move(w, s, to):
 * Move ${s} to the worker of ${to}. An operation that visits all sessions finds it on one of both
 * loops.
 *
 * Thread: loop of ${w}, not in a callback of ${s}
 * Errors: 0; -EALREADY (${s} is there); -EBUSY (session_may_move() says no); -EAGAIN (try again: a
 *         visit of all sessions is under way, or ${to} must reserve memory first); -ENOMEM;
 *         -ESHUTDOWN (${to} takes no sessions)
 */
int worker_move(struct worker *w, struct session *s, struct loop *to) NODISCARD;

/*
 * worker_give(w, s) / worker_take_back(w, s) / worker_gave(w, s):
 * Take ${s}, for which session_stays() is SESSION_STAYS_NOT, off ${w} for another process, to be
 * saved / that process did not take it: serve ${s} on / it did: free ${s}.
 *
 * Thread: loop of ${w}, not in a callback of ${s}
 * Errors: 0; -EAGAIN (a visit of all sessions is under way); -ENOMEM (${s} is aborted)
 */
int worker_give(struct worker *w, struct session *s) NODISCARD;
void worker_take_back(struct worker *w, struct session *s);
void worker_gave(struct worker *w, struct session *s);

/*
 * worker_take(w, s, take):
 * Serve the restored ${s} of another process, if its commit() says that this process has it. If
 * not, ${s} is freed and its descriptors are not touched.
 *
 * Thread: loop of ${w}
 * Owns:   ${w} owns ${s}, and ${fds} of ${take}
 * Errors: 0; as session_restore_open() (no commit()); -EAGAIN, -EPIPE or other of commit()
 */
struct worker_take {
    const struct session_state *state;
    const int *fds; /* as of session_fds() */
    unsigned n_fds;
    int (*commit)(void *cookie);
    void *cookie;
};

int worker_take(struct worker *w, struct session *s, const struct worker_take *take) NODISCARD;

/* worker_sessions(w): return the sessions of ${w}. Thread: loop of ${w} */
struct session_set *worker_sessions(struct worker *w);

/*
 * worker_destroy(w):
 * Free ${w}; NULL is allowed.
 *
 * Thread: control loop, or main, while the loop does not run
 */
void worker_destroy(struct worker *w);

#endif
