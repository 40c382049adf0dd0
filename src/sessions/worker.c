#include "sessions/worker_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/heard.h"
#include "engine/loop.h"
#include "engine/move_gate.h"
#include "engine/visit.h"
#include "net/netloop.h"
#include "net/splice.h"
#include "service/session.h"
#include "service/session_move.h"
#include "service/session_spares.h"

/* Note when the oldest session began, for netloop_is_young(). */
static void worker_note_oldest(struct worker *w)
{
    const struct session *s = session_set_oldest(&w->sessions);

    w->owner.net->oldest_at_ns = s ? s->began_at_ns : CLOCK_NEVER;
}

void worker_forget(struct worker *w, struct session *s)
{
    session_set_remove(&w->sessions, s);
    worker_note_oldest(w);
    loop_load_add(w->owner.net->loop, -1);
}

static void worker_on_ended(struct session_owner *owner, struct session *s)
{
    struct worker *w = CONTAINER_OF(owner, struct worker, owner);

    worker_forget(w, s);
    w->env.ended(w->env.cookie, s->service);
}

void worker_welcome(struct worker *w, struct session *s)
{
    worker_note_oldest(w);
    if (atomic_load(w->env.draining))
        session_drain(s);
    if (loop_state(w->owner.net->loop) >= LOOP_SHUTTING_DOWN)
        session_abort(s, SESSION_DRAIN);
}

/* The session was not adopted. */
static void worker_refuse(struct worker *w, struct session *s, enum session_reason reason)
{
    const struct service *service = s->service;

    loop_load_add(w->owner.net->loop, -1);
    session_set_reason(s, reason);
    session_refuse(s);
    w->env.ended(w->env.cookie, service);
}

static void worker_refuse_without_memory(struct worker *w, struct session *s)
{
    unsigned suppressed;

    if (log_allowed(&w->memory_limit, NS_PER_S, &suppressed))
        log_warning("listen %s: out of memory; the client is reset%s", s->service->listener,
                    LOG_SUPPRESSED(suppressed));
    worker_refuse(w, s, SESSION_ERROR);
}

static void worker_run_hand_over(struct task *t)
{
    struct session *s = CONTAINER_OF(t, struct session, task);
    struct worker *w = loop_cookie(loop_current());

    if (loop_reserve_fd(w->owner.net->loop, s->client_fd) < 0) {
        worker_refuse_without_memory(w, s);
        return;
    }
    session_set_add(&w->sessions, s);
    session_adopt(s, &w->owner);
    worker_welcome(w, s);
}

/* The loop ended before it adopted the session; on any thread. */
static void worker_drop_hand_over(struct task *t)
{
    struct session *s = CONTAINER_OF(t, struct session, task);

    worker_refuse(s->handed_to, s, SESSION_DRAIN);
}

static const struct task_type worker_hand_over_type = {
    .name = "adopt session", .run = worker_run_hand_over, .drop = worker_drop_hand_over};

int worker_hand_over(struct loop *loop, struct session *s)
{
    int rc;

    s->handed_to = loop_cookie(loop);
    s->task.type = &worker_hand_over_type;
    loop_load_add(loop, 1);
    rc = loop_submit(loop, LOOP_CONTROL, &s->task);
    if (rc < 0)
        loop_load_add(loop, -1);
    return rc;
}

void worker_adopt(struct session *s)
{
    loop_load_add(loop_current(), 1);
    worker_run_hand_over(&s->task);
}

/* ---- moves ---- */

/* A session on its way to another worker. */
struct worker_move {
    struct task task;
    struct session *session; /* NULL: only reserve memory for `n_fds` descriptors */
    struct heard heard;      /* of the loop that it left */
    int n_fds;
};

/* Also when the loop drops the task: then it shuts down, on its thread. */
static void worker_run_move(struct task *t)
{
    struct worker_move *move = CONTAINER_OF(t, struct worker_move, task);
    struct loop *loop = loop_current();
    struct worker *w = loop_cookie(loop);

    if (move->session) {
        loop_adopt_heard(loop, &move->heard);
        session_set_add(&w->sessions, move->session);
        session_join_loop(move->session, &w->owner);
        worker_welcome(w, move->session);
    } else {
        (void)!loop_reserve_fd(loop, move->n_fds - 1); /* without memory nothing moves here */
    }
    free(move);
}

static const struct task_type worker_move_type = {
    .name = "move session", .run = worker_run_move, .drop = worker_run_move};

static int worker_submit_move(struct loop *to, const struct worker_move *what)
{
    struct worker_move *move = malloc(sizeof(*move));
    int rc;

    if (!move)
        return -ENOMEM;
    *move = *what;
    move->task.type = &worker_move_type;
    rc = loop_submit(to, LOOP_CONTROL, &move->task);
    if (rc < 0)
        free(move);
    return rc;
}

/* Take ${s} off ${w} and submit it; if that fails, ${w} serves it on. */
static int worker_send(struct worker *w, struct session *s, struct loop *to)
{
    const struct worker_move move = {.session = s, .heard = *loop_heard(w->owner.net->loop)};
    int rc = session_leave_loop(s);

    if (rc < 0)
        return rc;
    worker_forget(w, s);
    loop_load_add(to, 1);
    rc = worker_submit_move(to, &move);
    if (rc == 0)
        return 0;
    loop_load_add(to, -1);
    loop_load_add(w->owner.net->loop, 1);
    session_set_add(&w->sessions, s);
    session_join_loop(s, &w->owner);
    worker_note_oldest(w);
    return rc;
}

int worker_move(struct worker *w, struct session *s, struct loop *to)
{
    const struct worker_move reserve = {.n_fds = loop_watchable_fds(w->owner.net->loop)};
    int rc;

    MUST(loop_is_current(w->owner.net->loop) && s->owner == &w->owner);
    if (to == w->owner.net->loop)
        return -EALREADY;
    if (loop_state(to) > LOOP_STARTED)
        return -ESHUTDOWN;
    if (!session_may_move(s))
        return -EBUSY;
    if (loop_watchable_fds(to) < reserve.n_fds) {
        rc = worker_submit_move(to, &reserve);
        return rc == 0 ? -EAGAIN : rc;
    }
    if (!move_gate_enter(w->env.moves))
        return -EAGAIN;
    rc = worker_send(w, s, to);
    move_gate_leave(w->env.moves);
    return rc;
}

/* ---- ends ---- */

/* Close the spare connections: no more clients will come. */
static void worker_stop_spares(struct worker *w)
{
    if (w->owner.spares)
        w->owner.spares->ops->stop(w->owner.spares);
}

static bool worker_drain_one(void *cookie, struct session *s)
{
    (void)cookie;
    session_drain(s);
    return false;
}

static int64_t worker_step_drain(void *cookie, unsigned i)
{
    struct worker *w = cookie;

    (void)i;
    if (!session_set_walks(&w->drained))
        worker_stop_spares(w);
    return session_set_go_on(&w->drained, &w->sessions, worker_drain_one, NULL);
}

static bool worker_stop_one(void *cookie, struct session *s)
{
    (void)cookie;
    session_abort(s, SESSION_DRAIN);
    return true;
}

/* Abort any remaining sessions at once: the loop may take no more tasks. */
static void worker_drop_stop(struct task *t)
{
    struct worker *w = CONTAINER_OF(t, struct worker, stop);
    struct session *s;

    while ((s = session_set_next(&w->stopped)))
        worker_stop_one(NULL, s);
    session_set_end(&w->stopped);
}

/* Sessions adopted later are aborted by worker_run_hand_over(). */
static void worker_run_stop(struct task *t)
{
    struct worker *w = CONTAINER_OF(t, struct worker, stop);

    if (!session_set_walks(&w->stopped))
        worker_stop_spares(w);
    if (session_set_go_on(&w->stopped, &w->sessions, worker_stop_one, NULL) != VISIT_OVER &&
        loop_submit(w->owner.net->loop, LOOP_TAIL, t) < 0)
        worker_drop_stop(t);
}

static void worker_run_give_back(struct task *t)
{
    struct worker *w = CONTAINER_OF(t, struct worker, give_back);

    atomic_store(&w->giving_back, false);
    if (!splice_give_back_pipes(w->owner.net, SPLICE_GIVE_BACK))
        worker_give_back_pipes(w);
}

/* A loop that is lost aborts its sessions. */
static const struct visit_ops worker_drain_ops = {
    .task = VISIT_TASK("drain sessions"), .first = LOOP_CONTROL, .step = worker_step_drain};
static const struct task_type worker_stop_type = {
    .name = "stop sessions", .run = worker_run_stop, .drop = worker_drop_stop};
static const struct task_type worker_give_back_type = {.name = "give back pipes",
                                                       .run = worker_run_give_back};

int worker_create(struct worker **out, struct loop *loop, const struct worker_env *env)
{
    struct worker *w = calloc(1, sizeof(*w));
    int rc;

    if (!w)
        return -ENOMEM;
    rc = netloop_create(&w->owner.net, loop);
    if (rc < 0) {
        free(w);
        return rc;
    }
    w->owner.net->descriptors = env->descriptors;
    w->owner.net->pipes.descriptors = env->descriptors;
    w->owner.net->buffered = env->buffered;
    w->owner.ended = worker_on_ended;
    w->env = *env;
    session_set_init(&w->sessions);
    worker_note_oldest(w);
    session_set_walk_init(&w->drained);
    session_set_walk_init(&w->stopped);
    visit_init(&w->drain, &worker_drain_ops, w, &w->draining, 1);
    w->stop.type = &worker_stop_type;
    w->give_back.type = &worker_give_back_type;
    loop_set_cookie(loop, w);
    loop_at_stop(loop, &w->stop);
    *out = w;
    return 0;
}

struct netloop *worker_net(const struct worker *w)
{
    return w->owner.net;
}

void worker_use_spares(struct worker *w, struct session_spares *spares)
{
    w->owner.spares = spares;
}

void worker_give_back_pipes(struct worker *w)
{
    struct loop *loop = w->owner.net->loop;

    if (loop_state(loop) == LOOP_NOT_STARTED || atomic_exchange(&w->giving_back, true))
        return;
    if (loop_submit(loop, LOOP_CONTROL, &w->give_back) < 0)
        atomic_store(&w->giving_back, false);
}

void worker_drain(struct worker *w)
{
    /* A loop that starts later drains its sessions because of env->draining. */
    visit_begin_one(&w->drain, w->owner.net->loop);
}

struct session_set *worker_sessions(struct worker *w)
{
    MUST(loop_is_current(w->owner.net->loop));
    return &w->sessions;
}

void worker_destroy(struct worker *w)
{
    if (!w)
        return;
    MUST(list_empty(&w->sessions.sessions));
    netloop_destroy(w->owner.net);
    free(w);
}
