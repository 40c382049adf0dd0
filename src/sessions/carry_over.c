#include "sessions/carry_over.h"

#include <errno.h>
#include <stdlib.h>

#include "base/list.h"
#include "base/log.h"
#include "engine/loop_group.h"
#include "engine/visit.h"
#include "listen/listener_generation.h"
#include "service/session.h"
#include "sessions/session_scan.h"
#include "sessions/session_set.h"
#include "sessions/worker.h"
#include "sessions/worker_leave.h"

struct carry_over_worker {
    struct session_set_walk walk;
    bool some_leave; /* found sessions for worker_leave_spread() */
};

enum carry_over_stage {
    CARRY_OVER_IDLE,
    CARRY_OVER_BOSSES,
    CARRY_OVER_ACCEPTING, /* workers that accept */
    CARRY_OVER_WORKERS
};

struct carry_over {
    struct carry_over_conf conf;
    enum carry_over_stage stage;
    struct list waiting;  /* generations replaced since the current run began */
    struct list released; /* generations replaced earlier; released at the end of the run */
    struct task advance;
    struct visit acceptors; /* of bosses, then workers */
    struct visit workers;
    struct carry_over_worker *of_workers; /* by loop number; behind the parts */
    struct visit_part parts[];            /* of both visits, one after the other */
};

static void carry_over_done(void *cookie)
{
    struct carry_over *co = cookie;

    if (loop_submit(co->conf.control, LOOP_CONTROL, &co->advance) < 0)
        return; /* the control loop has ended: carry_over_destroy() releases the generations */
}

static bool carry_over_one(void *cookie, struct session *s)
{
    bool *some_leave = cookie;

    if (s->phase != SESSION_PHASE_ENDING)
        listener_generation_carry_over(s);
    *some_leave |= worker_leave_at_last(s);
    return false;
}

static int64_t carry_over_step(void *cookie, unsigned i)
{
    const struct carry_over *co = cookie;
    struct carry_over_worker *of = &co->of_workers[i];

    return session_set_go_on(&of->walk, worker_sessions(co->conf.list[i]), carry_over_one,
                             &of->some_leave);
}

static void carry_over_lost(void *cookie, unsigned i)
{
    const struct carry_over *co = cookie;

    session_set_end(&co->of_workers[i].walk);
}

/*
 * Loops that accept have nothing to do; then workers are visited behind hand-overs that are queued
 * already. A loop without a thread has no sessions, and no pointer to an old generation. A lost
 * worker has ended, with all its sessions.
 */
static const struct visit_ops carry_over_acceptor_ops = {
    .task = VISIT_TASK("replace listeners"), .first = LOOP_TAIL, .done = carry_over_done};
static const struct visit_ops carry_over_worker_ops = {.task = VISIT_TASK("carry sessions over"),
                                                       .first = LOOP_CONTROL,
                                                       .is_exact = true,
                                                       .step = carry_over_step,
                                                       .lost = carry_over_lost,
                                                       .done = carry_over_done};

static void carry_over_release(struct list *generations)
{
    while (!list_empty(generations)) {
        struct listener_generation *gen = LIST_FIRST(generations, struct listener_generation, link);

        list_remove(&gen->link);
        listener_generation_release(gen);
    }
}

static void carry_over_ask_bosses(struct carry_over *co)
{
    list_append_all(&co->released, &co->waiting);
    co->stage = CARRY_OVER_BOSSES;
    visit_begin(&co->acceptors, co->conf.boss, loop_group_size(co->conf.boss));
}

static void carry_over_spread_leaves(struct carry_over *co)
{
    const struct session_scan_workers workers = {.loops = co->conf.workers, .list = co->conf.list};
    bool some_leave = false;

    for (unsigned i = 0; i < loop_group_max(co->conf.workers); i++) {
        some_leave |= co->of_workers[i].some_leave;
        co->of_workers[i].some_leave = false;
    }
    if (some_leave)
        worker_leave_spread(&workers);
}

static void carry_over_run_advance(struct task *t)
{
    struct carry_over *co = CONTAINER_OF(t, struct carry_over, advance);

    if (co->stage == CARRY_OVER_BOSSES) {
        co->stage = CARRY_OVER_ACCEPTING;
        visit_begin(&co->acceptors, co->conf.workers, loop_group_size(co->conf.workers));
        return;
    }
    if (co->stage == CARRY_OVER_ACCEPTING) {
        co->stage = CARRY_OVER_WORKERS;
        visit_begin(&co->workers, co->conf.workers, loop_group_size(co->conf.workers));
        return;
    }
    carry_over_release(&co->released);
    carry_over_spread_leaves(co);
    log_debug("reload: open sessions have the new settings of their listeners");
    co->stage = CARRY_OVER_IDLE;
    if (!list_empty(&co->waiting))
        carry_over_ask_bosses(co);
}

/* No drop(): see carry_over_done(). */
static const struct task_type carry_over_advance_type = {.name = "release replaced listeners",
                                                         .run = carry_over_run_advance};

int carry_over_create(struct carry_over **out, const struct carry_over_conf *conf)
{
    unsigned boss = loop_group_max(conf->boss), workers = loop_group_max(conf->workers);
    unsigned acceptors = boss > workers ? boss : workers;
    struct carry_over *co = calloc(1, sizeof(*co) + (acceptors + workers) * sizeof(co->parts[0]) +
                                          workers * sizeof(co->of_workers[0]));

    if (!co)
        return -ENOMEM;
    co->conf = *conf;
    co->advance.type = &carry_over_advance_type;
    list_init(&co->waiting);
    list_init(&co->released);
    co->of_workers = (void *)&co->parts[acceptors + workers];
    for (unsigned i = 0; i < workers; i++)
        session_set_walk_init(&co->of_workers[i].walk);
    visit_init(&co->acceptors, &carry_over_acceptor_ops, co, co->parts, acceptors);
    visit_init(&co->workers, &carry_over_worker_ops, co, co->parts + acceptors, workers);
    *out = co;
    return 0;
}

void carry_over_begin(struct carry_over *co, struct list *replaced)
{
    MUST(loop_is_current(co->conf.control));
    list_append_all(&co->waiting, replaced);
    if (co->stage == CARRY_OVER_IDLE && !list_empty(&co->waiting))
        carry_over_ask_bosses(co);
}

void carry_over_destroy(struct carry_over *co)
{
    if (!co)
        return;
    carry_over_release(&co->released);
    carry_over_release(&co->waiting);
    free(co);
}
