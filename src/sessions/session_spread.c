#include "sessions/session_spread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/loop.h"
#include "engine/loop_group.h"
#include "engine/visit.h"
#include "sessions/session_set.h"
#include "sessions/worker.h"

/* note: pace. A loop gives at most 8,000 sessions a second: nobody waits for more than a step. */
#define SESSION_SPREAD_STEP     16
#define SESSION_SPREAD_PAUSE_NS (2 * NS_PER_MS)

/* Pause between rounds while sessions stay on parked loops. */
#define SESSION_SPREAD_LATER_NS NS_PER_S

struct session_spread_counts {
    uint64_t moved, held_off;
    uint64_t staying[SESSION_OBSTACLES];
};

/* The part of loop ${i} in a round; written by it. */
struct session_spread_part {
    struct session_spread_counts counts;
    struct session_set_walk walk;
};

struct session_spread {
    struct session_spread_conf conf;
    struct task ask;   /* a change */
    atomic_bool asked; /* `ask` is queued */
    /* The control loop's. */
    struct timer again;
    struct task answer; /* a round is over */
    bool under_way, changed;
    bool evens;        /* loops in use give sessions, too */
    unsigned n_in_use; /* as of the last change */
    unsigned before;   /* n_in_use before the change that is told of */
    unsigned rounds;
    uint64_t moved; /* since the change */
    bool told;
    bool had_parked; /* sessions, when that was told */
    atomic_uint_least64_t total_moved, staying[SESSION_OBSTACLES]; /* relaxed */
    struct visit visit;
    struct session_spread_part *parts; /* behind `visit_parts` */
    struct visit_part visit_parts[];
};

static struct loop_group *session_spread_loops(const struct session_spread *sp)
{
    return sp->conf.workers.loops;
}

/* ---- a round, on the workers ---- */

struct session_spread_at {
    struct session_spread *sp;
    struct session_spread_part *part;
    struct loop *loop;
    bool is_parked;
    unsigned share; /* of each loop in use */
};

static struct session_spread_at session_spread_at(struct session_spread *sp, unsigned i)
{
    struct loop_group *loops = session_spread_loops(sp);
    unsigned n = loop_group_size(loops), in_use = loop_group_in_use(loops), all = 0;
    struct session_spread_at at = {
        .sp = sp, .part = &sp->parts[i], .loop = loop_group_at(loops, i), .is_parked = i >= in_use};

    for (unsigned k = 0; k < n; k++)
        all += loop_load(loop_group_at(loops, k));
    at.share = (all + in_use - 1) / in_use;
    return at;
}

static bool session_spread_gives(const struct session_spread_at *at)
{
    return at->is_parked ? loop_load(at->loop) > 0
                         : at->sp->evens && loop_load(at->loop) > at->share;
}

/* The loop in use with the fewest sessions. */
static struct loop *session_spread_to(const struct session_spread *sp)
{
    struct loop_group *loops = session_spread_loops(sp);
    unsigned n = loop_group_in_use(loops);
    struct loop *to = loop_group_at(loops, 0);

    for (unsigned i = 1; i < n; i++)
        if (loop_load(loop_group_at(loops, i)) < loop_load(to))
            to = loop_group_at(loops, i);
    return to;
}

static bool session_spread_visit(void *cookie, struct session *s)
{
    struct session_spread_at *at = cookie;
    struct session_spread_counts *counts = &at->part->counts;
    enum session_obstacle obstacle = session_obstacle(s);
    int rc;

    if (!session_spread_gives(at))
        return false;
    if (obstacle != SESSION_OBSTACLE_NONE) {
        counts->staying[obstacle]++;
        return false;
    }
    rc = worker_move(at->sp->conf.workers.list[at->part - at->sp->parts], s,
                     session_spread_to(at->sp));
    if (rc == 0)
        counts->moved++;
    else if (rc == -EAGAIN)
        counts->held_off++;
    else if (rc != -EALREADY)
        counts->staying[SESSION_OBSTACLE_NONE]++;
    return rc == 0;
}

/* See note: pace. */
static int64_t session_spread_step(void *cookie, unsigned i)
{
    struct session_spread_at at = session_spread_at(cookie, i);
    struct session_set_walk *walk = &at.part->walk;

    if (session_spread_gives(&at)) {
        if (!session_set_walks(walk))
            session_set_begin(walk, worker_sessions(at.sp->conf.workers.list[i]));
        if (!session_set_step(walk, SESSION_SPREAD_STEP, session_spread_visit, &at))
            return SESSION_SPREAD_PAUSE_NS;
    }
    session_set_end(walk);
    return VISIT_OVER;
}

static void session_spread_lost(void *cookie, unsigned i)
{
    struct session_spread *sp = cookie;

    session_set_end(&sp->parts[i].walk);
}

/* On any thread; if the control loop has ended, there are no more rounds. */
static void session_spread_done(void *cookie)
{
    struct session_spread *sp = cookie;

    (void)!loop_submit(sp->conf.control, LOOP_CONTROL, &sp->answer);
}

static const struct visit_ops session_spread_ops = {.task = VISIT_TASK("spread sessions"),
                                                    .first = LOOP_TAIL,
                                                    .step = session_spread_step,
                                                    .lost = session_spread_lost,
                                                    .done = session_spread_done};

/* ---- rounds, on the control loop ---- */

static void session_spread_start(struct session_spread *sp)
{
    unsigned n = loop_group_size(session_spread_loops(sp));

    sp->under_way = true;
    for (unsigned i = 0; i < n; i++)
        sp->parts[i].counts = (struct session_spread_counts){.moved = 0};
    visit_begin(&sp->visit, session_spread_loops(sp), n);
}

static struct session_spread_counts session_spread_sum(const struct session_spread *sp)
{
    struct session_spread_counts all = {.moved = 0};

    for (unsigned i = 0; i < loop_group_size(session_spread_loops(sp)); i++) {
        const struct session_spread_counts *counts = &sp->parts[i].counts;

        all.moved += counts->moved;
        all.held_off += counts->held_off;
        for (unsigned k = 0; k < SESSION_OBSTACLES && i >= sp->n_in_use; k++)
            all.staying[k] += counts->staying[k];
    }
    return all;
}

static unsigned session_spread_parked(const struct session_spread *sp)
{
    unsigned n = 0;

    for (unsigned i = sp->n_in_use; i < loop_group_size(session_spread_loops(sp)); i++)
        n += loop_load(loop_group_at(session_spread_loops(sp), i));
    return n;
}

#define SESSION_SPREAD_WHY_BYTES 160

static const char *session_spread_why(const struct session_spread_counts *counts, char *text)
{
    size_t len = 0;

    text[0] = '\0';
    for (unsigned k = 0; k < SESSION_OBSTACLES && len < SESSION_SPREAD_WHY_BYTES; k++)
        if (counts->staying[k] > 0)
            len += (size_t)snprintf(text + len, SESSION_SPREAD_WHY_BYTES - len, "%s%s=%llu",
                                    len > 0 ? " " : ": ", session_obstacle_name(k),
                                    (unsigned long long)counts->staying[k]);
    return text;
}

static void session_spread_tell(struct session_spread *sp,
                                const struct session_spread_counts *counts, unsigned parked)
{
    char why[SESSION_SPREAD_WHY_BYTES];

    if (!sp->told && (sp->moved > 0 || parked > 0))
        log_notice("workers: %u -> %u threads: sessions moved: %llu, not yet: %u%s", sp->before,
                   sp->n_in_use, (unsigned long long)sp->moved, parked,
                   session_spread_why(counts, why));
    else if (sp->told && sp->had_parked && parked == 0)
        log_notice("workers: the threads out of use have no sessions any more");
    sp->told = true;
    sp->had_parked = parked > 0;
}

static void session_spread_publish(struct session_spread *sp,
                                   const struct session_spread_counts *counts)
{
    sp->moved += counts->moved;
    atomic_fetch_add_explicit(&sp->total_moved, counts->moved, memory_order_relaxed);
    for (unsigned k = 0; k < SESSION_OBSTACLES; k++)
        atomic_store_explicit(&sp->staying[k], counts->staying[k], memory_order_relaxed);
}

static void session_spread_changed(struct session_spread *sp)
{
    unsigned now = loop_group_in_use(session_spread_loops(sp));

    sp->changed = false;
    sp->evens = now > sp->n_in_use;
    sp->before = sp->n_in_use;
    sp->n_in_use = now;
    sp->rounds = 0;
    sp->moved = 0;
    sp->told = false;
    session_spread_start(sp);
}

static void session_spread_run_answer(struct task *t)
{
    struct session_spread *sp = CONTAINER_OF(t, struct session_spread, answer);
    struct session_spread_counts counts = session_spread_sum(sp);
    unsigned parked = session_spread_parked(sp);
    bool is_first = !sp->told, soon = counts.held_off > 0 && ++sp->rounds < WORKER_MOVE_TRIES;

    sp->under_way = false;
    session_spread_publish(sp, &counts);
    if (sp->changed) {
        session_spread_changed(sp);
        return;
    }
    if (soon) {
        loop_schedule(sp->conf.control, &sp->again, WORKER_MOVE_PAUSE_NS);
        return;
    }
    if (is_first || parked == 0)
        session_spread_tell(sp, &counts, parked);
    sp->evens = false;
    /* After the first round, sessions may be on their way that were given to a loop before. */
    if ((is_first || parked > 0) && !atomic_load(sp->conf.draining))
        loop_schedule(sp->conf.control, &sp->again, SESSION_SPREAD_LATER_NS);
}

static void session_spread_run_again(struct task *t)
{
    session_spread_start(TIMER_OWNER(t, struct session_spread, again));
}

static void session_spread_run_ask(struct task *t)
{
    struct session_spread *sp = CONTAINER_OF(t, struct session_spread, ask);

    atomic_store(&sp->asked, false);
    if (loop_group_in_use(session_spread_loops(sp)) == sp->n_in_use)
        return;
    sp->changed = true;
    if (sp->under_way)
        return;
    if (sp->again.state != TIMER_IDLE)
        loop_cancel(sp->conf.control, &sp->again);
    session_spread_changed(sp);
}

/* No drop(): when the control loop ends, the workers have ended. */
static const struct task_type session_spread_ask_type = {.name = "spread sessions",
                                                         .run = session_spread_run_ask};
static const struct task_type session_spread_again_type = {.name = "spread sessions",
                                                           .run = session_spread_run_again};
static const struct task_type session_spread_answer_type = {.name = "sessions spread",
                                                            .run = session_spread_run_answer};

int session_spread_create(struct session_spread **out, const struct session_spread_conf *conf)
{
    unsigned max = loop_group_max(conf->workers.loops);
    struct session_spread *sp = calloc(
        1, sizeof(*sp) + max * (sizeof(sp->visit_parts[0]) + sizeof(struct session_spread_part)));

    if (!sp)
        return -ENOMEM;
    sp->conf = *conf;
    sp->ask.type = &session_spread_ask_type;
    sp->answer.type = &session_spread_answer_type;
    timer_init(&sp->again, &session_spread_again_type);
    sp->n_in_use = loop_group_in_use(conf->workers.loops);
    sp->parts = (void *)&sp->visit_parts[max];
    for (unsigned i = 0; i < max; i++)
        session_set_walk_init(&sp->parts[i].walk);
    visit_init(&sp->visit, &session_spread_ops, sp, sp->visit_parts, max);
    *out = sp;
    return 0;
}

void session_spread_begin(struct session_spread *sp)
{
    if (loop_state(sp->conf.control) == LOOP_NOT_STARTED) {
        sp->n_in_use = loop_group_in_use(session_spread_loops(sp)); /* there are no sessions */
        return;
    }
    if (!atomic_exchange(&sp->asked, true) &&
        loop_submit(sp->conf.control, LOOP_CONTROL, &sp->ask) < 0)
        atomic_store(&sp->asked, false);
}

struct session_spread_figures session_spread_figures(const struct session_spread *sp)
{
    struct session_spread_figures f = {
        .workers = loop_group_in_use(session_spread_loops(sp)),
        .sessions_moved = atomic_load_explicit(&sp->total_moved, memory_order_relaxed)};

    for (unsigned k = 0; k < SESSION_OBSTACLES; k++)
        f.staying[k] = atomic_load_explicit(&sp->staying[k], memory_order_relaxed);
    return f;
}

void session_spread_destroy(struct session_spread *sp)
{
    free(sp);
}
