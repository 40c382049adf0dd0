/* sessions/rebalance_look: a look of the control loop, each second. See rebalance.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/loop.h"
#include "engine/loop_group.h"
#include "net/netloop.h"
#include "sessions/rebalance_internal.h"
#include "sessions/worker.h"

#define REBALANCE_LOOK_NS NS_PER_S

/* After so many looks without a loop that is half busy they end. */
#define REBALANCE_LOOK_CALM 5

/* Space for the loops that got sessions, in a log line. */
#define REBALANCE_LOOK_TEXT_BYTES 512

#define REBALANCE_LOOK_COUNT(counter, n) \
    atomic_fetch_add_explicit(&(counter), (n), memory_order_relaxed)

static const char *rebalance_look_name(const struct rebalance *r, unsigned i)
{
    return loop_name(loop_group_at(r->env.workers.loops, i));
}

/* ---- log ---- */

static double rebalance_look_percent(unsigned load_us)
{
    return (double)load_us * 100 / REBALANCE_PLAN_WHOLE_US;
}

/* The loops that got sessions: as "work-2-2 (3), work-2-4 (1)". */
static void rebalance_look_got(const struct rebalance *r, char *text, size_t size)
{
    size_t len = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < loop_group_max(r->env.workers.loops) && len < size; i++)
        if (r->episode.got[i] > 0)
            len += (size_t)snprintf(text + len, size - len, "%s%s (%u)", len > 0 ? ", " : "",
                                    rebalance_look_name(r, i), r->episode.got[i]);
}

static void rebalance_look_why(const struct rebalance *r, char *text, size_t size)
{
    const struct rebalance_episode *e = &r->episode;

    if (e->is_asked)
        snprintf(text, size, "at an administrator's request");
    else if (e->from_us > REBALANCE_PLAN_BUSY_US)
        snprintf(text, size, "busy for more than %d %% of the time",
                 REBALANCE_PLAN_BUSY_US * 100 / REBALANCE_PLAN_WHOLE_US);
    else
        snprintf(text, size, "turns of %.1f ms, more than turn_goal",
                 (double)e->turn_ns / NS_PER_MS);
}

/* A second after the moves: log them, with the loads before and now. */
static void rebalance_look_log(struct rebalance *r)
{
    const struct rebalance_episode *e = &r->episode;
    char got[REBALANCE_LOOK_TEXT_BYTES], why[80];

    if (e->moved == 0)
        return;
    rebalance_look_got(r, got, sizeof(got));
    rebalance_look_why(r, why, sizeof(why));
    log_event(LOG_LOOP, LOG_LEVEL_NOTICE,
              "loop %s: rebalanced: %" PRIu64 " session%s moved to %s: %s; before: busy %.0f %%, "
              "loop %s %.0f %%; now: %.0f %% and %.0f %%",
              rebalance_look_name(r, e->from), e->moved, e->moved == 1 ? "" : "s", got, why,
              rebalance_look_percent(e->from_us), rebalance_look_name(r, e->idlest),
              rebalance_look_percent(e->idlest_us),
              rebalance_look_percent(r->plan.loops[e->from].load_us),
              rebalance_look_percent(r->plan.loops[e->idlest].load_us));
    r->episode.moved = 0;
}

/* ---- rounds ---- */

void rebalance_answer(struct rebalance *r, int rc)
{
    struct rebalance_ask *ask = r->ask;

    r->ask = NULL;
    if (!ask)
        return;
    ask->rc = rc;
    if (loop_submit(ask->asker, LOOP_CONTROL, &ask->task) < 0)
        return; /* the asking loop has ended */
}

static void rebalance_look_run_ended(struct task *t)
{
    struct rebalance *r = CONTAINER_OF(t, struct rebalance, round_ended);
    const struct rebalance_counts *counts = &r->round.counts;

    r->is_moving = false;
    r->episode.moved = counts->moved;
    memcpy(r->episode.got, r->round.got,
           loop_group_max(r->env.workers.loops) * sizeof(r->episode.got[0]));
    REBALANCE_LOOK_COUNT(r->n_moved, counts->moved);
    REBALANCE_LOOK_COUNT(r->n_heavy, counts->heavy);
    REBALANCE_LOOK_COUNT(r->n_busy, counts->busy);
    REBALANCE_LOOK_COUNT(r->n_failed, counts->failed);
    REBALANCE_LOOK_COUNT(r->n_episodes, counts->moved > 0);
    if (r->episode.is_asked && r->ask) {
        r->ask->counts = *counts;
        rebalance_answer(r, 0);
    }
}

/* The control loop has ended: nothing looks any more. */
static void rebalance_look_drop_ended(struct task *t)
{
    struct rebalance *r = CONTAINER_OF(t, struct rebalance, round_ended);

    rebalance_answer(r, -ESHUTDOWN);
}

static const struct task_type rebalance_look_ended_type = {.name = "end of a rebalancing",
                                                           .run = rebalance_look_run_ended,
                                                           .drop = rebalance_look_drop_ended};

static void rebalance_look_round_ended(struct rebalance_round *round)
{
    struct rebalance *r = CONTAINER_OF(round, struct rebalance, round);

    if (loop_submit(r->env.control, LOOP_CONTROL, &r->round_ended) < 0)
        task_drop(&r->round_ended);
}

static void rebalance_look_begin_round(struct rebalance *r, unsigned from)
{
    unsigned idlest = (unsigned)rebalance_plan_idlest(&r->plan);

    r->episode.from = from;
    r->episode.idlest = idlest;
    r->episode.from_us = r->plan.loops[from].load_us;
    r->episode.idlest_us = r->plan.loops[idlest].load_us;
    r->episode.turn_ns = r->plan.loops[from].turn_ns;
    r->episode.is_asked = r->ask != NULL;
    memcpy(r->round.plan.loops, r->plan.loops, r->plan.n_loops * sizeof(r->plan.loops[0]));
    r->round.plan.n_loops = r->plan.n_loops;
    r->round.from = (int)from;
    r->is_moving = true;
    rebalance_round_begin(&r->round);
}

/* ---- looks ---- */

static void rebalance_look_describe(struct rebalance *r, int from)
{
    int idlest = rebalance_plan_idlest(&r->plan);

    r->ask->from = from == REBALANCE_PLAN_NONE ? NULL : rebalance_look_name(r, (unsigned)from);
    r->ask->idlest = rebalance_look_name(r, (unsigned)idlest);
    r->ask->load_us = from == REBALANCE_PLAN_NONE ? 0 : r->plan.loops[from].load_us;
    r->ask->idlest_us = r->plan.loops[idlest].load_us;
}

/* Have the loads of sessions measured; true: those of loop ${i} are known. */
static bool rebalance_look_measure(struct rebalance *r, unsigned i)
{
    return event_load_ask(&worker_net(r->env.workers.list[i])->timing, clock_now_ns());
}

static void rebalance_look_act(struct rebalance *r)
{
    bool is_known = false;
    int from = rebalance_plan_from(&r->plan, r->ask != NULL);

    for (unsigned i = 0; i < r->plan.n_loops; i++)
        if (r->plan.loops[i].busy > 0 || (int)i == from) {
            bool is_one_known = rebalance_look_measure(r, i);

            is_known |= is_one_known && (int)i == from;
        }
    if (r->ask && (is_known || from == REBALANCE_PLAN_NONE))
        rebalance_look_describe(r, from);
    if (is_known)
        rebalance_look_begin_round(r, (unsigned)from);
    else if (from == REBALANCE_PLAN_NONE)
        rebalance_answer(r, 0);
}

static void rebalance_look_stop(struct rebalance *r)
{
    loop_cancel(r->env.control, &r->look);
    r->loads.at_ns = 0;
    r->calm = 0;
    for (unsigned i = 0; i < r->plan.n_loops; i++)
        r->plan.loops[i].busy = 0;
    atomic_store(&r->looks, false);
}

/* Are looks needed no more? */
static bool rebalance_look_is_over(const struct rebalance *r)
{
    if (r->is_moving || r->episode.moved > 0 || r->ask)
        return false;
    return atomic_load(r->env.draining) || atomic_load(&r->mode) == REBALANCE_OFF ||
           r->calm >= REBALANCE_LOOK_CALM;
}

static void rebalance_look_set_loops(struct rebalance *r)
{
    unsigned n = loop_group_in_use(r->env.workers.loops);

    for (unsigned i = n; i < r->plan.n_loops; i++)
        r->plan.loops[i].busy = 0;
    for (unsigned i = r->plan.n_loops; i < n; i++)
        r->loads.list[i] = (struct rebalance_load){.busy_ns = INT64_MAX / 2};
    r->plan.n_loops = n;
    r->plan.turn_goal_ns = atomic_load(&r->turn_goal_ns);
}

static void rebalance_look_calm(struct rebalance *r, bool is_busy)
{
    for (unsigned i = 0; i < r->plan.n_loops; i++)
        is_busy |= r->plan.loops[i].load_us > REBALANCE_HALF_US;
    r->calm = is_busy ? 0 : r->calm + 1;
}

static void rebalance_look_run(struct task *t)
{
    struct rebalance *r = TIMER_OWNER(t, struct rebalance, look);
    bool is_first = r->loads.at_ns == 0;

    if (r->is_moving)
        return;
    rebalance_look_set_loops(r);
    rebalance_load_look(&r->loads, r->env.workers.loops, &r->plan);
    if (is_first)
        return;
    REBALANCE_LOOK_COUNT(r->n_looks, 1);
    rebalance_look_log(r);
    rebalance_look_calm(r, rebalance_plan_note(&r->plan));
    if (atomic_load(r->env.draining))
        rebalance_answer(r, -ESHUTDOWN);
    else if (r->ask || atomic_load(&r->mode) == REBALANCE_AUTO)
        rebalance_look_act(r);
    if (rebalance_look_is_over(r))
        rebalance_look_stop(r);
}

static void rebalance_look_drop(struct task *t)
{
    rebalance_answer(TIMER_OWNER(t, struct rebalance, look), -ESHUTDOWN);
}

static const struct task_type rebalance_look_type = {
    .name = "rebalance", .run = rebalance_look_run, .drop = rebalance_look_drop};

void rebalance_look_init(struct rebalance *r)
{
    timer_init(&r->look, &rebalance_look_type);
    r->round_ended.type = &rebalance_look_ended_type;
    rebalance_round_init(&r->round, r->env.workers.loops, rebalance_look_round_ended);
}

void rebalance_look_start(struct rebalance *r)
{
    if (atomic_exchange(&r->looks, true) ||
        loop_submit_after(r->env.control, &r->look, 0, REBALANCE_LOOK_NS) == 0)
        return;
    atomic_store(&r->looks, false);
}
