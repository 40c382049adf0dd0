/* sessions/workers: all workers of the server. */
#ifndef SESSIONS_WORKERS_H
#define SESSIONS_WORKERS_H

#include "base/must.h"

struct loop_group;
struct loop_group_change;
struct worker;
struct worker_env;
struct workers;

/*
 * workers_create(out, loops, env):
 * Create a worker for each loop.
 *
 * Thread: main, before start
 * Owns:   ${env} is copied; ${loops} must outlive ${out}; the caller calls workers_destroy(), after
 *         an error too
 * Errors: as worker_create()
 */
int workers_create(struct workers **out, struct loop_group *loops,
                   const struct worker_env *env) NODISCARD;

/*
 * workers_prepare(ws, change) / workers_cancel(ws, change):
 * Create the workers of new loops / free these workers, before the loops are cancelled.
 *
 * Thread: control loop
 * Errors: as worker_create()
 */
int workers_prepare(struct workers *ws, const struct loop_group_change *change) NODISCARD;
void workers_cancel(struct workers *ws, const struct loop_group_change *change);

/* workers_list(ws): return the workers by loop number; the array has loop_group_max() entries. */
struct worker **workers_list(struct workers *ws);

/*
 * workers_give_back_pipes(ws) / workers_drain(ws):
 * Call worker_give_back_pipes() / worker_drain() for each worker.
 *
 * Thread: any / main
 */
void workers_give_back_pipes(struct workers *ws);
void workers_drain(struct workers *ws);

/* workers_destroy(ws): free ${ws}; NULL is allowed. Thread: main, while no loop runs */
void workers_destroy(struct workers *ws);

#endif
