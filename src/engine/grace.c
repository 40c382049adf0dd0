#include "engine/grace.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/must.h"
#include "engine/loop.h"
#include "engine/promise.h"

/* One loop's part: done when its task has run or the loop has ended. */
struct grace_visit {
    struct task task;
    struct promise_listener ended;
    struct grace *grace;
};

struct grace {
    struct loop_group *group;
    void (*over)(void *cookie);
    void *cookie;
    /* Loops not yet visited, plus grace_begin(). acq_rel: the last frees what others read. */
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

/* Readers of the old pointer on this loop have finished. */
static void grace_visit_end(struct task *t)
{
    grace_release(CONTAINER_OF(t, struct grace_visit, task)->grace);
}

static const struct task_type grace_visit_type = {
    .name = "end of a grace period", .run = grace_visit_end, .drop = grace_visit_end};

static void grace_loop_ended(struct promise_listener *l, struct promise *p)
{
    (void)p;
    grace_release(CONTAINER_OF(l, struct grace_visit, ended)->grace);
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
    for (unsigned i = 0; i < n; i++)
        gr->visits[i] = (struct grace_visit){
            .task.type = &grace_visit_type, .ended.done = grace_loop_ended, .grace = gr};
    *out = gr;
    return 0;
}

void grace_begin(struct grace *gr)
{
    unsigned n = loop_group_size(gr->group);

    atomic_init(&gr->left, n + 1);
    for (unsigned i = 0; i < n; i++) {
        struct loop *l = loop_group_at(gr->group, i);

        /*
         * Both accesses are sequentially consistent: a loop that starts later reads the new
         * pointer. A loop that refuses the task may still run others: wait for its end.
         */
        if (loop_state(l) == LOOP_NOT_STARTED)
            grace_release(gr);
        else if (loop_submit_lazy(l, LOOP_TAIL, &gr->visits[i].task) < 0)
            loop_listen_end(l, &gr->visits[i].ended);
    }
    grace_release(gr);
}

void grace_destroy(struct grace *gr)
{
    free(gr);
}
