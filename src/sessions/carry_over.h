/*
 * sessions/carry_over: moves open sessions to the current generation of their listener, then
 * releases the replaced generations.
 *
 *   begin -> each boss, then each worker runs a task -> each worker walks its sessions -> released
 *   -> [next begin]
 *
 * After these tasks, which wake idle loops, no loop that accepts creates a session of a replaced
 * generation, and the walks find all sessions that were handed over. Tasks plus walks are a grace
 * period (engine/grace) of bosses and workers. A session keeps its generation if its listener now
 * has another service. If the listener was removed, the session keeps its generation too, and must
 * leave (sessions/worker_leave).
 */
#ifndef SESSIONS_CARRY_OVER_H
#define SESSIONS_CARRY_OVER_H

#include "base/must.h"

struct carry_over;
struct list;
struct loop;
struct loop_group;
struct worker;

struct carry_over_conf {
    struct loop *control;
    struct loop_group *boss;
    struct loop_group *workers;
    struct worker **list; /* by loop number; loop_group_max() entries */
};

/*
 * carry_over_create(out, conf):
 * Allocate all that carry_over_begin() needs.
 *
 * Thread: main
 * Owns:   ${conf} is copied; what it points at must outlive ${out}
 * Errors: 0; -ENOMEM
 */
int carry_over_create(struct carry_over **out, const struct carry_over_conf *conf) NODISCARD;

/*
 * carry_over_begin(co, replaced):
 * Move sessions from the generations in ${replaced}, then release these. If a run is under way,
 * another one follows.
 *
 * Thread: control loop, after the new generations were made current
 * Owns:   takes all of ${replaced}
 */
void carry_over_begin(struct carry_over *co, struct list *replaced);

/*
 * carry_over_destroy(co):
 * Free ${co}, and release the generations that it still has; NULL is allowed.
 *
 * Thread: main, while no loop runs
 */
void carry_over_destroy(struct carry_over *co);

#endif
