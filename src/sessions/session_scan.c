#include "sessions/session_scan.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "engine/loop.h"
#include "engine/loop_group.h"
#include "sessions/session_set.h"
#include "sessions/worker.h"

struct session_scan_part {
    struct task task;
    struct session_scan *scan;
    struct loop *loop;
    struct worker *worker;
    struct session_set_walk walk;
};

struct session_scan {
    const struct session_scan_ops *ops;
    void *cookie;
    struct loop *asker;
    struct task answer;
    /*
     * Number of parts under way, plus one while parts are being started. Acquire and release:
     * done() sees what the parts wrote.
     */
    atomic_uint left;
    struct session_scan_part parts[];
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

static void session_scan_release(struct session_scan *scan)
{
    if (atomic_fetch_sub_explicit(&scan->left, 1, memory_order_acq_rel) > 1)
        return;
    if (loop_submit(scan->asker, LOOP_CONTROL, &scan->answer) < 0)
        session_scan_drop_answer(&scan->answer);
}

static void session_scan_end_part(struct session_scan_part *part)
{
    session_set_end(&part->walk);
    session_scan_release(part->scan);
}

static bool session_scan_visit(void *cookie, struct session *s)
{
    const struct session_scan_part *part = cookie;
    const struct session_scan *scan = part->scan;

    return scan->ops->visit(scan->cookie, (unsigned)(part - scan->parts), s);
}

static void session_scan_run_part(struct task *t)
{
    struct session_scan_part *part = CONTAINER_OF(t, struct session_scan_part, task);

    if (!session_set_walks(&part->walk))
        session_set_begin(&part->walk, worker_sessions(part->worker));
    if (session_set_step(&part->walk, SESSION_SET_STEP, session_scan_visit, part) ||
        loop_submit(part->loop, LOOP_TAIL, t) < 0)
        session_scan_end_part(part);
}

/* The worker has ended, with its sessions. */
static void session_scan_drop_part(struct task *t)
{
    session_scan_end_part(CONTAINER_OF(t, struct session_scan_part, task));
}

static const struct task_type session_scan_part_type = {
    .name = "visit sessions", .run = session_scan_run_part, .drop = session_scan_drop_part};

unsigned session_scan_parts(const struct session_scan_workers *workers)
{
    return loop_group_size(workers->loops);
}

static void session_scan_begin_part(struct session_scan *scan, unsigned i,
                                    const struct session_scan_workers *workers)
{
    struct session_scan_part *part = &scan->parts[i];

    part->scan = scan;
    part->loop = loop_group_at(workers->loops, i);
    part->worker = workers->list[i];
    part->task.type = &session_scan_part_type;
    session_set_walk_init(&part->walk);
    /* LOOP_CONTROL: before queued tasks, but after sessions handed over earlier. */
    if (loop_state(part->loop) == LOOP_NOT_STARTED ||
        loop_submit(part->loop, LOOP_CONTROL, &part->task) < 0)
        session_scan_release(scan);
}

int session_scan_begin(const struct session_scan_workers *workers, unsigned n_parts,
                       const struct session_scan_ops *ops, void *cookie)
{
    struct loop *asker = loop_current();
    struct session_scan *scan;

    MUST(asker);
    if (loop_state(asker) >= LOOP_SHUTDOWN)
        return -ESHUTDOWN;
    scan = calloc(1, sizeof(*scan) + n_parts * sizeof(scan->parts[0]));
    if (!scan)
        return -ENOMEM;
    scan->ops = ops;
    scan->cookie = cookie;
    scan->asker = asker;
    scan->answer.type = &session_scan_answer_type;
    atomic_init(&scan->left, n_parts + 1);
    for (unsigned i = 0; i < n_parts; i++)
        session_scan_begin_part(scan, i, workers);
    session_scan_release(scan);
    return 0;
}
