#include "engine/grace.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/must.h"
#include "engine/loop.h"
#include "engine/promise.h"

/*
 * Visits the loops `at`, `at` + n_visits ... one after the other, each until it has run or dropped
 * `task`, or has ended.
 */
struct grace_visit {
    struct task task;
    struct promise_listener ended;
    struct grace *grace;
    unsigned at;
};

struct grace {
    struct loop_group *group;
    void (*over)(void *cookie);
    void *cookie;
    unsigned n_loops; /* size of the group at grace_begin() */
    unsigned n_visits;
    /*
     * Visits under way, plus one for grace_begin(). acq_rel: the last visit frees what the others
     * have read.
     */
    atomic_uint left;
    struct grace_visit visits[];
};

static void grace_release(struct grace *gr)
{
    if (atomic_fetch_sub_explicit(&gr->left, 1, memory_order_acq_rel) > 1)
        return;
    gr->over(gr->cookie);
    free(gr);
}

/*
 * Submit the task to the next loop that has a thread. This load of the state and the store of the
 * new pointer are sequentially consistent, so a loop that starts later reads the new pointer. A
 * loop that refuses the task may still run other tasks: wait for its end.
 */
static void grace_visit_next(struct grace_visit *v)
{
    struct grace *gr = v->grace;

    for (; v->at < gr->n_loops; v->at += gr->n_visits) {
        struct loop *l = loop_group_at(gr->group, v->at);

        if (loop_state(l) == LOOP_NOT_STARTED)
            continue;
        if (loop_submit_lazy(l, LOOP_TAIL, &v->task) < 0)
            loop_listen_end(l, &v->ended);
        return;
    }
    grace_release(gr);
}

static void grace_visit_over(struct grace_visit *v)
{
    v->at += v->grace->n_visits;
    grace_visit_next(v);
}

static void grace_visit_end(struct task *t)
{
    grace_visit_over(CONTAINER_OF(t, struct grace_visit, task));
}

static const struct task_type grace_visit_type = {
    .name = "end of a grace period", .run = grace_visit_end, .drop = grace_visit_end};

static void grace_loop_ended(struct promise_listener *l, struct promise *p)
{
    (void)p;
    grace_visit_over(CONTAINER_OF(l, struct grace_visit, ended));
}

int grace_create(struct grace **out, struct loop_group *g, void (*over)(void *cookie), void *cookie)
{
    unsigned n = loop_group_size(g);
    struct grace *gr = calloc(1, sizeof(*gr) + n * sizeof(gr->visits[0]));

    if (!gr)
        return -ENOMEM;
    gr->group = g;
    gr->over = over;
    gr->cookie = cookie;
    gr->n_visits = n;
    for (unsigned i = 0; i < n; i++)
        gr->visits[i] = (struct grace_visit){
            .task.type = &grace_visit_type, .ended.done = grace_loop_ended, .grace = gr, .at = i};
    *out = gr;
    return 0;
}

void grace_begin(struct grace *gr)
{
    unsigned n = gr->n_visits;

    gr->n_loops = loop_group_size(gr->group);
    atomic_init(&gr->left, n + 1);
    for (unsigned i = 0; i < n; i++)
        grace_visit_next(&gr->visits[i]);
    grace_release(gr);
}

void grace_destroy(struct grace *gr)
{
    free(gr);
}
