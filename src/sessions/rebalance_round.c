#include "sessions/rebalance_round.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "engine/loop.h"
#include "engine/loop_group.h"
#include "net/netloop.h"
#include "service/session.h"
#include "sessions/worker.h"

/* A session that has moved no byte for longer is idle: it has no load, and stays. */
#define REBALANCE_ROUND_IDLE_NS (2 * NS_PER_S)

/* Active sessions whose events were not timed have some load. */
static unsigned rebalance_round_load_us(const struct session *s, int64_t now_ns)
{
    unsigned load_us = session_load_us(s, now_ns);

    if (load_us == 0 && now_ns - session_active_at_ns(s) < REBALANCE_ROUND_IDLE_NS)
        return 1;
    return load_us;
}

/* Sort key of ${s} for session_idlest: the heaviest session first. CLOCK_NEVER: it stays. */
static int64_t rebalance_round_rank(const struct session *s)
{
    int64_t now_ns = loop_now_ns(s->owner->net->loop);
    unsigned load_us = rebalance_round_load_us(s, now_ns);

    return load_us == 0 || session_moved_ns(s, now_ns) < REBALANCE_ROUND_REST_NS
               ? CLOCK_NEVER
               : -(int64_t)load_us;
}

static bool rebalance_round_find(struct rebalance_round *r, struct worker *w)
{
    if (!session_set_walks(&r->heaviest.walk))
        session_idlest_begin(&r->heaviest, worker_sessions(w), rebalance_round_rank);
    else if (session_set_is_through(&r->heaviest.walk))
        return true;
    return session_idlest_step(&r->heaviest);
}

/* Move ${s}, if a loop has space for its load. Errors: -EAGAIN (try ${s} again later) */
static int rebalance_round_move(struct rebalance_round *r, struct worker *w, struct session *s)
{
    int64_t now_ns = loop_now_ns(s->owner->net->loop);
    unsigned load_us = rebalance_round_load_us(s, now_ns);
    int to = rebalance_plan_place(&r->plan, r->from, load_us), rc = -ESHUTDOWN;

    if (to == REBALANCE_PLAN_NONE) {
        r->counts.heavy++;
        return 0;
    }
    session_set_moved(s, now_ns);                   /* before the other loop has it */
    if ((unsigned)to < loop_group_in_use(r->loops)) /* it may have been parked since the plan */
        rc = worker_move(w, s, loop_group_at(r->loops, (unsigned)to));
    if (rc == 0) {
        r->counts.moved++;
        r->got[to]++;
        return 0;
    }
    session_set_moved(s, 0);
    rebalance_plan_undo(&r->plan, r->from, to, load_us);
    if (rc == -EAGAIN && ++r->tries < WORKER_MOVE_TRIES)
        return rc;
    if (rc == -EBUSY)
        r->counts.busy++;
    else
        r->counts.failed++;
    return 0;
}

/* Move sessions for one step. Result as that of step() in struct visit_ops. */
static int64_t rebalance_round_go(struct rebalance_round *r, struct worker *w)
{
    const struct loop *loop = worker_net(w)->loop;
    struct session *s;
    struct budget step;

    session_set_step_begin(&step);
    while (loop_load(loop) > 1 && (s = session_idlest_take(&r->heaviest))) {
        if (rebalance_round_move(r, w, s) == -EAGAIN) {
            session_idlest_put_back(&r->heaviest);
            return WORKER_MOVE_PAUSE_NS;
        }
        if (budget_step_over(&step, true))
            return VISIT_NEXT_TURN;
    }
    return VISIT_OVER;
}

static int64_t rebalance_round_step(void *cookie, unsigned i)
{
    struct rebalance_round *r = cookie;
    struct worker *w = loop_cookie(loop_current());
    int64_t next = rebalance_round_find(r, w) ? rebalance_round_go(r, w) : VISIT_NEXT_TURN;

    (void)i;
    if (next == VISIT_OVER)
        session_idlest_end(&r->heaviest);
    return next;
}

/* The loop has ended, with its sessions. */
static void rebalance_round_lost(void *cookie, unsigned i)
{
    struct rebalance_round *r = cookie;

    (void)i;
    session_idlest_end(&r->heaviest);
}

static void rebalance_round_done(void *cookie)
{
    struct rebalance_round *r = cookie;

    r->ended(r);
}

static const struct visit_ops rebalance_round_ops = {.task = VISIT_TASK("rebalance sessions"),
                                                     .first = LOOP_CONTROL,
                                                     .step = rebalance_round_step,
                                                     .lost = rebalance_round_lost,
                                                     .done = rebalance_round_done};

void rebalance_round_init(struct rebalance_round *r, struct loop_group *loops,
                          void (*ended)(struct rebalance_round *round))
{
    r->loops = loops;
    r->ended = ended;
    session_idlest_init(&r->heaviest);
    visit_init(&r->visit, &rebalance_round_ops, r, &r->part, 1);
}

void rebalance_round_begin(struct rebalance_round *r)
{
    r->tries = 0;
    r->counts = (struct rebalance_counts){.moved = 0};
    memset(r->got, 0, loop_group_max(r->loops) * sizeof(r->got[0]));
    visit_begin_one(&r->visit, loop_group_at(r->loops, (unsigned)r->from));
}
