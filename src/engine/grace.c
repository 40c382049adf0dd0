#include "engine/grace.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/visit.h"

struct grace {
    struct visit visit;
    struct loop_group *group;
    void (*over)(void *cookie);
    void *cookie;
    struct visit_part parts[];
};

static void grace_done(void *cookie)
{
    struct grace *gr = cookie;

    gr->over(gr->cookie);
    free(gr);
}

static const struct visit_ops grace_ops = {.task = VISIT_TASK("end of a grace period"),
                                           .first = LOOP_TAIL,
                                           .is_lazy = true,
                                           .done = grace_done};

static const struct visit_ops grace_ops_now = {
    .task = VISIT_TASK("end of a grace period"), .first = LOOP_TAIL, .done = grace_done};

int grace_create(struct grace **out, struct loop_group *g, void (*over)(void *cookie), void *cookie)
{
    unsigned n = loop_group_size(g);
    struct grace *gr = calloc(1, sizeof(*gr) + n * sizeof(gr->parts[0]));

    if (!gr)
        return -ENOMEM;
    gr->group = g;
    gr->over = over;
    gr->cookie = cookie;
    visit_init(&gr->visit, &grace_ops, gr, gr->parts, n);
    *out = gr;
    return 0;
}

void grace_begin(struct grace *gr)
{
    visit_begin(&gr->visit, gr->group, loop_group_size(gr->group));
}

void grace_begin_now(struct grace *gr)
{
    gr->visit.ops = &grace_ops_now;
    for (unsigned i = 0; i < gr->visit.n_parts; i++)
        gr->parts[i].timer.task.type = &grace_ops_now.task;
    grace_begin(gr);
}

void grace_destroy(struct grace *gr)
{
    free(gr);
}
