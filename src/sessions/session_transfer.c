#include "sessions/session_transfer.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "engine/loop.h"
#include "engine/loop_group.h"
#include "service/session.h"
#include "sessions/session_filter.h"
#include "sessions/session_scan.h"
#include "sessions/worker.h"

/* Written by the worker of its number, read when all are visited. */
struct session_transfer_part {
    struct session_transfer_result result;
    uint64_t held_off;
};

struct session_transfer {
    struct session_transfer_conf conf;
    struct session_filter filter;
    struct session_scan_workers workers;
    struct session_transfer_result result;
    struct timer again;
    unsigned tries;
    unsigned n_parts;
    struct session_transfer_part parts[];
};

static bool session_transfer_visit(void *cookie, unsigned i, struct session *s)
{
    struct session_transfer *t = cookie;
    struct session_transfer_part *part = &t->parts[i];
    int rc = -ESHUTDOWN;

    if (!session_filter_matches(&t->filter, s, clock_now_ns()))
        return false;
    if (loop_group_uses(t->workers.loops, t->conf.to)) /* it may have been parked meanwhile */
        rc = worker_move(t->workers.list[i], s, t->conf.to);
    switch (rc) {
    case 0: part->result.moved++; return true;
    case -EALREADY: part->result.there++; return false;
    case -EBUSY: part->result.busy++; return false;
    case -EAGAIN: part->held_off++; return false;
    default: part->result.failed++; return false;
    }
}

static void session_transfer_answer(struct session_transfer *t)
{
    t->conf.answered(t->conf.cookie, &t->result);
    free(t);
}

/* What moved in an earlier try is there in the next: count it once. */
static uint64_t session_transfer_sum(struct session_transfer *t)
{
    uint64_t held_off = 0, moved_before = t->result.moved;

    t->result = (struct session_transfer_result){.moved = moved_before};
    for (unsigned i = 0; i < t->n_parts; i++) {
        struct session_transfer_part *part = &t->parts[i];

        t->result.moved += part->result.moved;
        t->result.there += part->result.there;
        t->result.busy += part->result.busy;
        t->result.failed += part->result.failed;
        held_off += part->held_off;
        *part = (struct session_transfer_part){.held_off = 0};
    }
    t->result.there -= moved_before < t->result.there ? moved_before : t->result.there;
    return held_off;
}

static void session_transfer_done(void *cookie)
{
    struct session_transfer *t = cookie;
    uint64_t held_off = session_transfer_sum(t);

    if (held_off > 0 && ++t->tries < WORKER_MOVE_TRIES) {
        loop_schedule(loop_current(), &t->again, WORKER_MOVE_PAUSE_NS);
        return;
    }
    t->result.failed += held_off;
    session_transfer_answer(t);
}

static void session_transfer_lost(void *cookie)
{
    free(cookie);
}

static const struct session_scan_ops session_transfer_ops = {.visit = session_transfer_visit,
                                                             .done = session_transfer_done,
                                                             .moves = true,
                                                             .lost = session_transfer_lost};

static void session_transfer_run_again(struct task *task)
{
    struct session_transfer *t = TIMER_OWNER(task, struct session_transfer, again);

    if (session_scan_begin(&t->workers, t->n_parts, &session_transfer_ops, t) < 0)
        session_transfer_answer(t);
}

static void session_transfer_drop_again(struct task *task)
{
    free(TIMER_OWNER(task, struct session_transfer, again));
}

static const struct task_type session_transfer_again_type = {.name = "move sessions",
                                                             .run = session_transfer_run_again,
                                                             .drop = session_transfer_drop_again};

int session_transfer_begin(const struct session_scan_workers *workers,
                           const struct session_transfer_conf *conf)
{
    unsigned n = session_scan_parts(workers);
    struct session_transfer *t = calloc(1, sizeof(*t) + n * sizeof(t->parts[0]));
    int rc;

    if (!t)
        return -ENOMEM;
    t->conf = *conf;
    t->filter = *conf->filter;
    t->workers = *workers;
    t->n_parts = n;
    timer_init(&t->again, &session_transfer_again_type);
    rc = session_scan_begin(workers, n, &session_transfer_ops, t);
    if (rc < 0)
        free(t);
    return rc;
}
