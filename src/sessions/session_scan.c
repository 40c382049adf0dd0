#include "sessions/session_scan.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/loop.h"
#include "engine/loop_group.h"
#include "engine/visit.h"
#include "sessions/session_set.h"
#include "sessions/worker.h"

struct session_scan {
    const struct session_scan_ops *ops;
    void *cookie;
    struct worker **workers;
    struct loop *asker;
    struct task answer;
    struct visit visit;
    struct session_set_walk *walks; /* behind the parts */
    struct visit_part parts[];
};

/* The visit of a session by a scan. */
struct session_scan_at {
    const struct session_scan *scan;
    unsigned part;
};

static void session_scan_run_answer(struct task *t)
{
    struct session_scan *scan = CONTAINER_OF(t, struct session_scan, answer);

    scan->ops->done(scan->cookie);
    free(scan);
}

static void session_scan_drop_answer(struct task *t)
{
    struct session_scan *scan = CONTAINER_OF(t, struct session_scan, answer);

    scan->ops->lost(scan->cookie);
    free(scan);
}

static const struct task_type session_scan_answer_type = {
    .name = "sessions visited", .run = session_scan_run_answer, .drop = session_scan_drop_answer};

static bool session_scan_visit(void *cookie, struct session *s)
{
    const struct session_scan_at *at = cookie;

    return at->scan->ops->visit(at->scan->cookie, at->part, s);
}

static int64_t session_scan_step(void *cookie, unsigned i)
{
    struct session_scan *scan = cookie;
    struct session_scan_at at = {scan, i};

    return session_set_go_on(&scan->walks[i], worker_sessions(scan->workers[i]), session_scan_visit,
                             &at);
}

/* The worker has ended, with its sessions. */
static void session_scan_lost(void *cookie, unsigned i)
{
    struct session_scan *scan = cookie;

    session_set_end(&scan->walks[i]);
}

static void session_scan_done(void *cookie)
{
    struct session_scan *scan = cookie;

    if (loop_submit(scan->asker, LOOP_CONTROL, &scan->answer) < 0)
        task_drop(&scan->answer);
}

/* LOOP_CONTROL: before queued tasks, but after sessions handed over earlier. */
#define SESSION_SCAN_VISIT(exact)                                                         \
    {                                                                                     \
        .task = VISIT_TASK("visit sessions"), .first = LOOP_CONTROL, .is_exact = (exact), \
        .step = session_scan_step, .lost = session_scan_lost, .done = session_scan_done   \
    }

static const struct visit_ops session_scan_exact_ops = SESSION_SCAN_VISIT(true);
static const struct visit_ops session_scan_moving_ops = SESSION_SCAN_VISIT(false);

unsigned session_scan_parts(const struct session_scan_workers *workers)
{
    return loop_group_size(workers->loops);
}

int session_scan_begin(const struct session_scan_workers *workers, unsigned n_parts,
                       const struct session_scan_ops *ops, void *cookie)
{
    struct loop *asker = loop_current();
    struct session_scan *scan;

    MUST(asker);
    if (loop_state(asker) >= LOOP_SHUTDOWN)
        return -ESHUTDOWN;
    scan = calloc(1, sizeof(*scan) + n_parts * (sizeof(scan->parts[0]) + sizeof(scan->walks[0])));
    if (!scan)
        return -ENOMEM;
    scan->ops = ops;
    scan->cookie = cookie;
    scan->asker = asker;
    scan->answer.type = &session_scan_answer_type;
    scan->workers = workers->list;
    scan->walks = (void *)&scan->parts[n_parts];
    for (unsigned i = 0; i < n_parts; i++)
        session_set_walk_init(&scan->walks[i]);
    visit_init(&scan->visit, ops->moves ? &session_scan_moving_ops : &session_scan_exact_ops, scan,
               scan->parts, n_parts);
    visit_begin(&scan->visit, workers->loops, n_parts);
    return 0;
}
