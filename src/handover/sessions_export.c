#include "handover/sessions_export.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/loop.h"
#include "engine/loop_group.h"
#include "handover/handoff_figures.h"
#include "handover/session_message.h"
#include "handover/session_record.h"
#include "server/server_parts.h"
#include "service/session.h"
#include "service/session_state.h"
#include "sessions/session_set.h"
#include "sessions/worker.h"

/* Sessions without an answer, of all workers. */
#define SESSIONS_EXPORT_SLOTS 64

#define SESSIONS_EXPORT_TICK_NS (5 * NS_PER_MS)

/* After this time without success, the sessions that may go later stay. */
#define SESSIONS_EXPORT_PATIENCE_NS (2 * NS_PER_S)

/* The last walk takes all. */
static const int64_t sessions_export_idle_ns[] = {10 * NS_PER_S, NS_PER_S, 100 * NS_PER_MS, 0};

/*
 * note: slots. A worker makes a FREE slot FILLING, and SENT before it sends. Then whoever makes it
 * SETTLING decides: main by an answer or at the end, the worker if sending fails. The worker looks
 * at `is_closed` after it has sent, main sets it before it looks for SENT slots: so one of both
 * sees the other. All are sequentially consistent.
 */
enum sessions_export_slot_state {
    SESSIONS_EXPORT_FREE,
    SESSIONS_EXPORT_FILLING,
    SESSIONS_EXPORT_SENT,
    SESSIONS_EXPORT_SETTLING
};

struct sessions_export_part;

struct sessions_export_slot {
    struct task task;
    atomic_int state; /* enum sessions_export_slot_state */
    struct sessions_export_part *part;
    struct session *session;
    _Atomic uint64_t number; /* its index in the lowest bits */
    enum session_stay answer;
};

/* Of a worker, on its loop. */
struct sessions_export_part {
    struct timer timer;
    struct sessions_export *export;
    struct worker *worker;
    struct loop *loop;
    struct session_set_walk walk;
    unsigned pass;    /* index in sessions_export_idle_ns */
    bool some_may_go; /* found in this walk, for the next one */
    double allowed;   /* sessions that may be sent now */
    int64_t ticked_at_ns, moved_at_ns;
    unsigned n_sent;                      /* sessions without an answer */
    uint64_t stayed[SESSION_STAYS];       /* in this walk */
    _Atomic uint64_t told[SESSION_STAYS]; /* `stayed` of the last walk */
    _Atomic uint64_t moved;
    atomic_bool is_over;
};

/* Why main closed the slots. */
enum sessions_export_closed { SESSIONS_EXPORT_OPEN, SESSIONS_EXPORT_LOST, SESSIONS_EXPORT_STOPPED };

struct sessions_export {
    int fd;
    unsigned rate;
    atomic_int is_closed; /* enum sessions_export_closed */
    uint8_t buffer[SESSION_MESSAGE_INLINE_BYTES];
    struct sessions_export_slot slots[SESSIONS_EXPORT_SLOTS];
    unsigned n_parts;
    struct sessions_export_part parts[];
};

static bool sessions_export_move(struct sessions_export_slot *slot,
                                 enum sessions_export_slot_state from,
                                 enum sessions_export_slot_state to)
{
    int expected = from;

    return atomic_compare_exchange_strong(&slot->state, &expected, to); /* see note: slots */
}

/* ---- worker's loop ---- */

static void sessions_export_tell(struct sessions_export_part *part)
{
    for (unsigned i = 0; i < SESSION_STAYS; i++)
        atomic_store_explicit(&part->told[i], part->stayed[i], memory_order_relaxed);
}

static void sessions_export_settle(struct sessions_export_slot *slot)
{
    struct sessions_export_part *part = slot->part;
    struct session *s = slot->session;

    slot->session = NULL;
    if (slot->answer == SESSION_STAYS_NOT) {
        worker_gave(part->worker, s);
        part->moved_at_ns = clock_now_ns();
        atomic_fetch_add(&part->moved, 1);
    } else {
        if (session_stay_is_lasting(slot->answer))
            s->kept = slot->answer;
        part->stayed[slot->answer]++; /* the next walk counts it again */
        part->some_may_go |= !session_stay_is_lasting(slot->answer);
        if (atomic_load(&part->is_over))
            sessions_export_tell(part);
        worker_take_back(part->worker, s);
    }
    part->n_sent--;
    atomic_store(&slot->state, SESSIONS_EXPORT_FREE);
}

static void sessions_export_run_settle(struct task *t)
{
    sessions_export_settle(CONTAINER_OF(t, struct sessions_export_slot, task));
}

static const struct task_type sessions_export_settle_type = {.name = "session handed over",
                                                             .run = sessions_export_run_settle,
                                                             .drop = sessions_export_run_settle};

static struct sessions_export_slot *sessions_export_slot(struct sessions_export *ex)
{
    for (unsigned i = 0; i < SESSIONS_EXPORT_SLOTS; i++)
        if (sessions_export_move(&ex->slots[i], SESSIONS_EXPORT_FREE, SESSIONS_EXPORT_FILLING))
            return &ex->slots[i];
    return NULL;
}

static int sessions_export_send(const struct sessions_export *ex,
                                const struct sessions_export_slot *slot)
{
    const struct session_message m = {.type = SESSION_MESSAGE_SESSION,
                                      .number = atomic_load(&slot->number)};
    struct session_message_body body = {.n = 0};
    struct session_state st;
    uint8_t *record;
    int rc;

    session_save(slot->session, &st);
    rc = session_record_encode(&record, &body.n, &st);
    if (rc < 0)
        return rc;
    body.data = record;
    body.n_fds = session_fds(slot->session, body.fds);
    rc = session_message_send(ex->fd, &m, &body);
    free(record);
    return rc;
}

/* What an answer that will not come would have been. */
static enum session_stay sessions_export_closed_answer(const struct sessions_export *ex)
{
    return atomic_load(&ex->is_closed) == SESSIONS_EXPORT_STOPPED ? SESSION_STAYS_NOT
                                                                  : SESSION_STAYS_SCARCE;
}

/* Send ${s}; false: try no more sessions in this step. */
static bool sessions_export_give(struct sessions_export_part *part,
                                 struct sessions_export_slot *slot, struct session *s)
{
    struct sessions_export *ex = part->export;
    int rc = worker_give(part->worker, s);

    if (rc < 0) {
        atomic_store(&slot->state, SESSIONS_EXPORT_FREE);
        part->some_may_go |= rc == -EAGAIN;
        return rc != -EAGAIN;
    }
    part->n_sent++;
    slot->part = part;
    slot->session = s;
    atomic_fetch_add(&slot->number, SESSIONS_EXPORT_SLOTS);
    atomic_store(&slot->state, SESSIONS_EXPORT_SENT);
    rc = sessions_export_send(ex, slot);
    if (rc == 0 && atomic_load(&ex->is_closed) == SESSIONS_EXPORT_OPEN)
        return true;
    if (!sessions_export_move(slot, SESSIONS_EXPORT_SENT, SESSIONS_EXPORT_SETTLING))
        return false;
    slot->answer = rc < 0 ? SESSION_STAYS_SCARCE : sessions_export_closed_answer(ex);
    sessions_export_settle(slot);
    return false;
}

/* Why ${s} stays in this walk; SESSION_STAYS_NOT: it is its turn. */
static enum session_stay sessions_export_stays(const struct sessions_export_part *part,
                                               const struct session *s)
{
    enum session_stay stay = s->kept ? (enum session_stay)s->kept : session_stays(s);

    if (stay != SESSION_STAYS_NOT)
        return stay;
    return clock_now_ns() - session_active_at_ns(s) < sessions_export_idle_ns[part->pass]
               ? SESSION_STAYS_BUSY
               : SESSION_STAYS_NOT;
}

static void sessions_export_walk(struct sessions_export_part *part)
{
    for (unsigned i = 0; i < SESSION_STAYS; i++)
        part->stayed[i] = 0;
    part->some_may_go = false;
    session_set_begin(&part->walk, worker_sessions(part->worker));
}

/* Visit sessions until a walk is through (true), or nothing more may be sent now. */
static bool sessions_export_visit(struct sessions_export_part *part)
{
    struct sessions_export_slot *slot = NULL;
    struct budget step;
    struct session *s = NULL;
    bool more = true, gives;

    session_set_step_begin(&step);
    do {
        if (!slot && !(slot = sessions_export_slot(part->export)))
            return false;
        s = session_set_next(&part->walk);
        if (!s)
            break;
        enum session_stay stay = sessions_export_stays(part, s);

        gives = stay == SESSION_STAYS_NOT;
        if (gives) {
            more = sessions_export_give(part, slot, s);
            part->allowed--;
            slot = NULL;
        } else {
            part->stayed[stay]++;
            part->some_may_go |= !session_stay_is_lasting(stay);
        }
    } while (more && part->allowed >= 1 && !budget_step_over(&step, gives));
    if (slot)
        atomic_store(&slot->state, SESSIONS_EXPORT_FREE);
    return !s;
}

static void sessions_export_end(struct sessions_export_part *part)
{
    session_set_end(&part->walk);
    sessions_export_tell(part);
    atomic_store(&part->is_over, true);
}

/* A walk is through: begin the next, unless all that stay do so for good. */
static bool sessions_export_next_walk(struct sessions_export_part *part)
{
    bool is_last = part->pass + 1 == ARRAY_LEN(sessions_export_idle_ns);

    session_set_end(&part->walk);
    if (is_last && ((!part->some_may_go && part->n_sent == 0) ||
                    clock_now_ns() - part->moved_at_ns > SESSIONS_EXPORT_PATIENCE_NS))
        return false;
    part->pass += !is_last;
    sessions_export_tell(part);
    sessions_export_walk(part);
    return true;
}

static void sessions_export_run(struct task *t)
{
    struct sessions_export_part *part = TIMER_OWNER(t, struct sessions_export_part, timer);
    struct sessions_export *ex = part->export;
    int64_t now_ns = clock_now_ns();
    double rate = (double)ex->rate / ex->n_parts;

    if (!session_set_walks(&part->walk)) {
        part->ticked_at_ns = part->moved_at_ns = now_ns - SESSIONS_EXPORT_TICK_NS;
        sessions_export_walk(part);
    }
    part->allowed += rate * (double)(now_ns - part->ticked_at_ns) / NS_PER_S;
    if (part->allowed > 1 + rate / 10)
        part->allowed = 1 + rate / 10;
    part->ticked_at_ns = now_ns;
    if (atomic_load(&ex->is_closed) != SESSIONS_EXPORT_OPEN ||
        (part->allowed >= 1 && sessions_export_visit(part) && !sessions_export_next_walk(part))) {
        sessions_export_end(part);
        return;
    }
    loop_schedule(part->loop, &part->timer, SESSIONS_EXPORT_TICK_NS);
}

static void sessions_export_drop(struct task *t)
{
    sessions_export_end(TIMER_OWNER(t, struct sessions_export_part, timer));
}

static const struct task_type sessions_export_type = {
    .name = "hand sessions over", .run = sessions_export_run, .drop = sessions_export_drop};

/* ---- main ---- */

/* Answer for ${slot}, if it is SENT. */
static void sessions_export_answer(struct sessions_export_slot *slot, enum session_stay answer)
{
    if (!sessions_export_move(slot, SESSIONS_EXPORT_SENT, SESSIONS_EXPORT_SETTLING))
        return;
    slot->answer = answer;
    if (loop_submit(slot->part->loop, LOOP_CONTROL, &slot->task) < 0)
        log_debug("upgrade: a session ends with its loop"); /* it takes no more tasks */
}

static void sessions_export_close(struct sessions_export *ex, enum sessions_export_closed why)
{
    int open = SESSIONS_EXPORT_OPEN;

    if (!atomic_compare_exchange_strong(&ex->is_closed, &open, why))
        return;
    for (unsigned i = 0; i < SESSIONS_EXPORT_SLOTS; i++)
        sessions_export_answer(&ex->slots[i], sessions_export_closed_answer(ex));
}

static void sessions_export_act(struct sessions_export *ex, const struct session_message *m)
{
    struct sessions_export_slot *slot = &ex->slots[m->number % SESSIONS_EXPORT_SLOTS];

    if (atomic_load(&slot->number) != m->number)
        return;
    if (m->type == SESSION_MESSAGE_TAKEN)
        sessions_export_answer(slot, SESSION_STAYS_NOT);
    else if (m->type == SESSION_MESSAGE_REFUSED)
        sessions_export_answer(slot, m->why > SESSION_STAYS_NOT && m->why < SESSION_STAYS
                                         ? (enum session_stay)m->why
                                         : SESSION_STAYS_RECORD);
}

void sessions_export_step(struct sessions_export *ex)
{
    struct session_message m;
    struct session_message_body body;
    int rc;

    while ((rc = session_message_receive(ex->fd, &m, &body, ex->buffer)) != -EAGAIN) {
        if (rc == -EPIPE) {
            sessions_export_close(ex, SESSIONS_EXPORT_LOST);
            return;
        }
        if (rc == 0 && body.n_fds == 0 && body.data == ex->buffer)
            sessions_export_act(ex, &m);
        else if (rc == 0)
            session_message_drop(&body, ex->buffer); /* an answer has none */
    }
}

bool sessions_export_is_through(const struct sessions_export *ex)
{
    for (unsigned i = 0; i < ex->n_parts; i++)
        if (!atomic_load(&ex->parts[i].is_over))
            return false;
    return true;
}

bool sessions_export_is_over(const struct sessions_export *ex)
{
    if (!sessions_export_is_through(ex))
        return false;
    for (unsigned i = 0; i < SESSIONS_EXPORT_SLOTS; i++)
        if (atomic_load(&ex->slots[i].state) != SESSIONS_EXPORT_FREE)
            return false;
    return true;
}

void sessions_export_stop(struct sessions_export *ex)
{
    sessions_export_step(ex);
    sessions_export_close(ex, SESSIONS_EXPORT_STOPPED);
}

void sessions_export_figures(const struct sessions_export *ex, struct handoff_figures *out)
{
    memset(out, 0, sizeof(*out)); /* all bytes are sent */
    out->under_way = !sessions_export_is_over(ex);
    for (unsigned i = 0; i < ex->n_parts; i++) {
        out->moved += atomic_load(&ex->parts[i].moved);
        for (unsigned why = 0; why < SESSION_STAYS; why++)
            out->stayed[why] += atomic_load_explicit(&ex->parts[i].told[why], memory_order_relaxed);
    }
}

static void sessions_export_init_part(struct sessions_export *ex, unsigned i,
                                      const struct server_parts *parts)
{
    struct sessions_export_part *part = &ex->parts[i];

    part->export = ex;
    part->worker = parts->workers[i];
    part->loop = loop_group_at(parts->loops, i);
    timer_init(&part->timer, &sessions_export_type);
    session_set_walk_init(&part->walk);
}

/* A loop without a thread has no sessions. */
static void sessions_export_begin_part(struct sessions_export_part *part)
{
    if (loop_state(part->loop) != LOOP_STARTED ||
        loop_submit_after(part->loop, &part->timer, 0, 0) < 0)
        atomic_store(&part->is_over, true);
}

int sessions_export_begin(struct sessions_export **out, struct server *sv, int fd, unsigned rate)
{
    const struct server_parts parts = server_parts(sv);
    unsigned n = loop_group_size(parts.loops);
    struct sessions_export *ex = calloc(1, sizeof(*ex) + n * sizeof(ex->parts[0]));

    if (!ex)
        return -ENOMEM;
    ex->fd = fd;
    ex->rate = rate;
    ex->n_parts = n;
    for (unsigned i = 0; i < SESSIONS_EXPORT_SLOTS; i++) {
        ex->slots[i].task.type = &sessions_export_settle_type;
        atomic_init(&ex->slots[i].number, i);
    }
    for (unsigned i = 0; i < n; i++)
        sessions_export_init_part(ex, i, &parts);
    for (unsigned i = 0; i < n; i++)
        sessions_export_begin_part(&ex->parts[i]);
    *out = ex;
    return 0;
}

void sessions_export_destroy(struct sessions_export *ex)
{
    free(ex);
}
