#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "engine/loop.h"
#include "engine/loop_group.h"
#include "net/netloop.h"
#include "sessions/rebalance_internal.h"
#include "sessions/worker.h"
#include "stats/figure.h"

/* Shortest time between two samples of rebalance_notice(). */
#define REBALANCE_NOTICE_NS (200 * NS_PER_MS)

static int rebalance_allocate(struct rebalance *r)
{
    unsigned max = loop_group_max(r->env.workers.loops);

    r->noticed.loops = calloc(max, sizeof(r->noticed.loops[0]));
    r->noticed_loads.list = calloc(max, sizeof(r->noticed_loads.list[0]));
    r->plan.loops = calloc(max, sizeof(r->plan.loops[0]));
    r->loads.list = calloc(max, sizeof(r->loads.list[0]));
    r->round.plan.loops = calloc(max, sizeof(r->round.plan.loops[0]));
    r->round.got = calloc(max, sizeof(r->round.got[0]));
    r->episode.got = calloc(max, sizeof(r->episode.got[0]));
    return r->noticed.loops && r->noticed_loads.list && r->plan.loops && r->loads.list &&
                   r->round.plan.loops && r->round.got && r->episode.got
               ? 0
               : -ENOMEM;
}

int rebalance_create(struct rebalance **out, const struct rebalance_env *env)
{
    struct rebalance *r = calloc(1, sizeof(*r));
    int rc;

    if (!r)
        return -ENOMEM;
    r->env = *env;
    rc = rebalance_allocate(r);
    if (rc < 0) {
        rebalance_destroy(r);
        return rc;
    }
    rebalance_look_init(r);
    *out = r;
    return 0;
}

void rebalance_use(struct rebalance *r, const struct rebalance_conf *conf)
{
    atomic_store(&r->turn_goal_ns, conf->turn_goal_ns);
    atomic_store(&r->mode, conf->mode);
}

static bool rebalance_is_one_half_busy(const struct rebalance *r)
{
    int64_t goal_ns = atomic_load(&r->turn_goal_ns);

    for (unsigned i = 0; i < r->noticed.n_loops; i++)
        if (r->noticed.loops[i].load_us > REBALANCE_HALF_US ||
            (goal_ns > 0 && r->noticed.loops[i].turn_ns > goal_ns))
            return true;
    return false;
}

void rebalance_notice(struct rebalance *r)
{
    unsigned n = loop_group_in_use(r->env.workers.loops);

    if (atomic_load(&r->mode) == REBALANCE_OFF || atomic_load(&r->looks) ||
        r->noticed.n_loops != n) {
        r->noticed_loads.at_ns = 0;
        r->noticed.n_loops = n;
    }
    if (atomic_load(&r->mode) == REBALANCE_OFF || atomic_load(&r->looks) ||
        clock_now_ns() - r->noticed_loads.at_ns < REBALANCE_NOTICE_NS)
        return;
    rebalance_load_look(&r->noticed_loads, r->env.workers.loops, &r->noticed);
    if (!atomic_load(r->env.draining) && rebalance_is_one_half_busy(r))
        rebalance_look_start(r);
}

/* ---- at an administrator's request ---- */

static void rebalance_run_answer(struct task *t)
{
    struct rebalance_ask *ask = CONTAINER_OF(t, struct rebalance_ask, task);

    ask->answered(ask, ask->rc);
}

static const struct task_type rebalance_answer_type = {.name = "answer about rebalancing",
                                                       .run = rebalance_run_answer};

static void rebalance_refuse(struct rebalance_ask *ask, int rc)
{
    ask->task.type = &rebalance_answer_type;
    ask->rc = rc;
    if (loop_submit(ask->asker, LOOP_CONTROL, &ask->task) < 0)
        return; /* the asking loop has ended */
}

static void rebalance_run_ask(struct task *t)
{
    struct rebalance_ask *ask = CONTAINER_OF(t, struct rebalance_ask, task);
    struct rebalance *r = ask->rebalance;

    if (r->ask || atomic_load(r->env.draining)) {
        rebalance_refuse(ask, r->ask ? -EBUSY : -ESHUTDOWN);
        return;
    }
    ask->task.type = &rebalance_answer_type;
    r->ask = ask;
    rebalance_look_start(r);
}

static void rebalance_drop_ask(struct task *t)
{
    rebalance_refuse(CONTAINER_OF(t, struct rebalance_ask, task), -ESHUTDOWN);
}

static const struct task_type rebalance_ask_type = {
    .name = "ask for rebalancing", .run = rebalance_run_ask, .drop = rebalance_drop_ask};

int rebalance_ask_begin(struct rebalance *r, struct rebalance_ask *ask)
{
    MUST(loop_current());
    ask->rebalance = r;
    ask->asker = loop_current();
    ask->task.type = &rebalance_ask_type;
    return loop_submit(r->env.control, LOOP_CONTROL, &ask->task);
}

void rebalance_time_events(const struct session_scan_workers *workers)
{
    unsigned n = loop_group_size(workers->loops);
    int64_t now_ns = clock_now_ns();

    for (unsigned i = 0; i < n; i++)
        (void)event_load_ask(&worker_net(workers->list[i])->timing, now_ns);
}

/* ---- figures ---- */

static const struct figure rebalance_rows[] = {
    FIGURE_LIVE(struct rebalance, COUNTER, NUMBER, n_looks, "looks",
                "Looks at the loads of loops."),
    FIGURE_LIVE(struct rebalance, COUNTER, NUMBER, n_episodes, "episodes",
                "Looks at which sessions moved."),
    FIGURE_LIVE(struct rebalance, COUNTER, NUMBER, n_moved, "moved",
                "Sessions that moved to a loop with less load."),
    FIGURE_LIVE(struct rebalance, COUNTER, NUMBER, n_heavy, "heavy",
                "Moves refused: the session is too heavy for any other loop."),
    FIGURE_LIVE(struct rebalance, COUNTER, NUMBER, n_busy, "busy",
                "Moves refused: the session connects, ends, or waits for another thread."),
    FIGURE_LIVE(struct rebalance, COUNTER, NUMBER, n_failed, "failed",
                "Moves refused: out of memory, held off, or the other loop takes no sessions."),
};

static const struct figure_table rebalance_table = {FIGURE_LIVE_TABLE(0, rebalance_rows)};

void rebalance_figures(const struct rebalance *r, struct figure_visitor *v)
{
    const struct figure_object object = {.subject = FIGURE_REBALANCE};

    figure_show_live(v, &rebalance_table, &object, NULL, r);
}

void rebalance_destroy(struct rebalance *r)
{
    if (!r)
        return;
    free(r->noticed.loops);
    free(r->noticed_loads.list);
    free(r->plan.loops);
    free(r->loads.list);
    free(r->round.plan.loops);
    free(r->round.got);
    free(r->episode.got);
    free(r);
}
