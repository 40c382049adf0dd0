/*
 * server/worker: a loop with the sessions that live on it.
 */
#ifndef SERVER_WORKER_H
#define SERVER_WORKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"

struct memory_account;
struct descriptor_budget;
struct loop;
struct netloop;
struct session;
struct spare_pool;
struct upstream_server;
struct worker;

/* What a worker needs of the server around it. */
struct worker_env {
    const atomic_bool *draining;
    struct descriptor_budget *descriptors; /* of all workers; NULL: not counted */
    struct memory_account *buffered;       /* likewise */
    /*
     * ${s} has ended and is about to be freed. On the worker's loop, or on any thread if it was
     * never adopted.
     */
    void (*ended)(void *cookie, struct session *s);
    void *cookie;
};

/*
 * worker_create(out, loop, env):
 * Make ${loop}, which has no thread yet, ready for sessions. When it shuts down, the sessions it
 * has are aborted.
 *
 * Thread: main
 * Owns:   the caller owns ${out}; ${loop} is borrowed
 * Errors: 0; -ENOMEM
 */
int worker_create(struct worker **out, struct loop *loop, const struct worker_env *env) NODISCARD;

/*
 * worker_net(w) / worker_use_spares(w, pool):
 * What its sockets share; where its sessions find connections that are open already.
 *
 * Thread: before start
 * Owns:   ${pool} is borrowed until the worker's loop has ended
 */
struct netloop *worker_net(const struct worker *w);
void worker_use_spares(struct worker *w, struct spare_pool *pool);

/*
 * worker_hand_over(loop, s):
 * Give ${s} to the worker of ${loop}. It begins there before any task that is queued.
 *
 * Thread: any
 * Owns:   on 0 the worker owns ${s}, or drops it with a reset if it ends first; on error the caller
 *         still does
 * Errors: as loop_submit()
 */
int worker_hand_over(struct loop *loop, struct session *s) NODISCARD;

/*
 * worker_drain(w):
 * Tell the sessions that the server drains; those that come later learn it from env->draining. Call
 * it once.
 *
 * Thread: main
 */
void worker_drain(struct worker *w);

/* How long a worker takes to give back lent descriptors: a turn or two. */
#define WORKER_GIVE_BACK_NS (2 * NS_PER_MS)

/*
 * worker_give_back_pipes(w):
 * Have the worker give back the descriptors that are lent to its pipes (note: lent pipes in
 * net/pipe_pool.h).
 *
 * Thread: any
 */
void worker_give_back_pipes(struct worker *w);

/*
 * worker_evict(w, server, before_ns, max):
 * Have up to ${max} sessions that were sent to ${server} until ${before_ns} end there. True when
 * there may be more.
 *
 * Thread: loop of ${w}
 */
bool worker_evict(struct worker *w, const struct upstream_server *server, int64_t before_ns,
                  unsigned max);

/*
 * worker_stalled(w, victims, max) / worker_idlest(w, victims, max):
 * The sessions, ${max} at most, that hold bytes which their receivers have not taken and on which
 * nothing has moved for longest, that one first; the same of all sessions, whether they hold any or
 * not. How many there are.
 *
 * Thread: loop of ${w}
 * Owns:   nothing; ${victims} are good until the end of the turn
 */
unsigned worker_stalled(struct worker *w, struct session **victims, unsigned max);
unsigned worker_idlest(struct worker *w, struct session **victims, unsigned max);

/*
 * worker_destroy(w):
 * Free it; NULL is allowed.
 *
 * Thread: main, when its loop has ended or was never started
 */
void worker_destroy(struct worker *w);

#endif
