#include "sessions/carry_over.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/list.h"
#include "engine/loop_group.h"
#include "listen/listener_generation.h"
#include "sessions/session_scan.h"
#include "sessions/session_set.h"
#include "sessions/worker.h"
#include "sessions/worker_leave.h"

enum carry_over_stage { CARRY_OVER_IDLE, CARRY_OVER_BOSSES, CARRY_OVER_WORKERS };

/* The task that visits one loop. */
struct carry_over_visit {
    struct task task;
    struct carry_over *carry_over;
    struct loop *loop;
    struct worker *worker; /* NULL: the loop is a boss */
    bool some_leave;       /* found sessions for worker_leave_spread() */
};

struct carry_over {
    struct carry_over_conf conf;
    enum carry_over_stage stage;
    struct list waiting;  /* generations replaced since the current run began */
    struct list released; /* generations replaced earlier; released at the end of the run */
    struct task advance;
    /*
     * Number of visits under way, plus one while visits are being started. acq_rel: the control
     * loop sees what the visits did.
     */
    atomic_uint left;
    struct carry_over_visit visits[];
};

static void carry_over_done(struct carry_over *co)
{
    if (atomic_fetch_sub_explicit(&co->left, 1, memory_order_acq_rel) > 1)
        return;
    if (loop_submit(co->conf.control, LOOP_CONTROL, &co->advance) < 0)
        return; /* the control loop has ended: carry_over_destroy() releases the generations */
}

static struct carry_over_visit *carry_over_visit_of(struct task *t)
{
    return CONTAINER_OF(t, struct carry_over_visit, task);
}

static void carry_over_end_visit(struct task *t)
{
    carry_over_done(carry_over_visit_of(t)->carry_over);
}

/* Submit ${v}. If its loop has ended, so does the server: carry_over_destroy() does the rest. */
static void carry_over_submit(struct carry_over_visit *v, enum loop_queue queue)
{
    if (loop_submit(v->loop, queue, &v->task) < 0)
        return;
}

/* Visit some sessions of the worker; go on in the next turn. */
static void carry_over_run_walk(struct task *t)
{
    struct carry_over_visit *v = carry_over_visit_of(t);

    if (worker_carry_over(v->worker, SESSION_SET_STEP, &v->some_leave))
        carry_over_done(v->carry_over);
    else
        carry_over_submit(v, LOOP_TAIL);
}

static const struct task_type carry_over_boss_type = {
    .name = "replace listeners", .run = carry_over_end_visit, .drop = carry_over_end_visit};
static const struct task_type carry_over_worker_type = {
    .name = "carry sessions over", .run = carry_over_run_walk, .drop = carry_over_end_visit};

/*
 * Visit the loops of ${g}. A loop without a thread has no sessions, and no pointer to an old
 * generation.
 */
static void carry_over_visit_all(struct carry_over *co, struct loop_group *g,
                                 struct worker **workers)
{
    unsigned n = loop_group_size(g);

    atomic_store_explicit(&co->left, n + 1, memory_order_relaxed);
    for (unsigned i = 0; i < n; i++) {
        struct carry_over_visit *v = &co->visits[i];

        v->loop = loop_group_at(g, i);
        v->worker = workers ? workers[i] : NULL;
        v->task.type = workers ? &carry_over_worker_type : &carry_over_boss_type;
        if (loop_state(v->loop) == LOOP_NOT_STARTED)
            carry_over_done(co);
        else /* behind hand-overs that are queued already */
            carry_over_submit(v, workers ? LOOP_CONTROL : LOOP_TAIL);
    }
    carry_over_done(co);
}

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
    carry_over_visit_all(co, co->conf.boss, NULL);
}

static void carry_over_spread_leaves(struct carry_over *co)
{
    const struct session_scan_workers workers = {.loops = co->conf.workers, .list = co->conf.list};
    bool some_leave = false;

    for (unsigned i = 0; i < loop_group_max(co->conf.workers); i++) {
        some_leave |= co->visits[i].some_leave;
        co->visits[i].some_leave = false;
    }
    if (some_leave)
        worker_leave_spread(&workers);
}

static void carry_over_run_advance(struct task *t)
{
    struct carry_over *co = CONTAINER_OF(t, struct carry_over, advance);

    if (co->stage == CARRY_OVER_BOSSES) {
        co->stage = CARRY_OVER_WORKERS;
        carry_over_visit_all(co, co->conf.workers, co->conf.list);
        return;
    }
    carry_over_release(&co->released);
    carry_over_spread_leaves(co);
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
    unsigned n = boss > workers ? boss : workers;
    struct carry_over *co = calloc(1, sizeof(*co) + n * sizeof(co->visits[0]));

    if (!co)
        return -ENOMEM;
    co->conf = *conf;
    co->advance.type = &carry_over_advance_type;
    list_init(&co->waiting);
    list_init(&co->released);
    for (unsigned i = 0; i < n; i++)
        co->visits[i].carry_over = co;
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
