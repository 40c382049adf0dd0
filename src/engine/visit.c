#include "engine/visit.h"

#include "base/must.h"
#include "engine/loop.h"
#include "engine/move_gate.h"

static void visit_release(struct visit *v)
{
    if (!ref_release(&v->left))
        return;
    if (v->ops->is_exact)
        move_gate_release(loop_group_moves(v->group));
    if (v->ops->done)
        v->ops->done(v->cookie);
}

/* A loop that refuses the task may still run other tasks: wait for its end. */
static void visit_submit(struct visit_part *part, struct loop *loop, enum loop_queue queue)
{
    int rc = part->visit->ops->is_lazy ? loop_submit_lazy(loop, queue, &part->timer.task)
                                       : loop_submit(loop, queue, &part->timer.task);

    if (rc < 0)
        loop_listen_end(loop, &part->ended);
}

static void visit_next(struct visit_part *part)
{
    struct visit *v = part->visit;

    for (; part->i < v->n_loops; part->i += v->n_parts) {
        struct loop *loop = loop_group_at(v->group, part->i);

        if (loop_state(loop) != LOOP_NOT_STARTED) {
            visit_submit(part, loop, v->ops->first);
            return;
        }
    }
    visit_release(v);
}

static void visit_over(struct visit_part *part)
{
    part->i += part->visit->n_parts;
    visit_next(part);
}

static void visit_lose(struct visit_part *part)
{
    const struct visit *v = part->visit;

    if (v->ops->lost)
        v->ops->lost(v->cookie, part->i);
    visit_over(part);
}

void visit_run(struct task *t)
{
    struct visit_part *part = TIMER_OWNER(t, struct visit_part, timer);
    const struct visit *v = part->visit;
    int64_t again_ns = v->ops->step ? v->ops->step(v->cookie, part->i) : VISIT_OVER;

    if (again_ns == VISIT_OVER)
        visit_over(part);
    else if (again_ns > 0)
        loop_schedule(loop_current(), &part->timer, again_ns);
    else
        visit_submit(part, loop_current(), LOOP_TAIL);
}

void visit_drop(struct task *t)
{
    visit_lose(TIMER_OWNER(t, struct visit_part, timer));
}

static void visit_loop_ended(struct promise_listener *l, struct promise *p)
{
    (void)p;
    visit_lose(CONTAINER_OF(l, struct visit_part, ended));
}

void visit_init(struct visit *v, const struct visit_ops *ops, void *cookie,
                struct visit_part *parts, unsigned n_parts)
{
    *v = (struct visit){.ops = ops, .cookie = cookie, .parts = parts, .n_parts = n_parts};
    for (unsigned i = 0; i < n_parts; i++) {
        timer_init(&parts[i].timer, &ops->task);
        parts[i].ended.done = visit_loop_ended;
        parts[i].visit = v;
    }
}

/*
 * The loads of the loops' states are sequentially consistent, as the caller's stores: a loop that
 * starts later sees these.
 */
void visit_begin(struct visit *v, struct loop_group *group, unsigned n)
{
    v->group = group;
    v->n_loops = n;
    if (v->ops->is_exact)
        move_gate_hold(loop_group_moves(group));
    ref_init(&v->left);
    for (unsigned i = 0; i < v->n_parts; i++) {
        ref_hold(&v->left);
        v->parts[i].i = i;
        visit_next(&v->parts[i]);
    }
    visit_release(v);
}

void visit_begin_one(struct visit *v, struct loop *loop)
{
    MUST(!v->ops->is_exact);
    v->n_loops = 1;
    ref_init(&v->left);
    v->parts[0].i = 0;
    if (loop_state(loop) == LOOP_NOT_STARTED)
        visit_release(v);
    else
        visit_submit(&v->parts[0], loop, v->ops->first);
}
