#include "sessions/workers.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/loop_group.h"
#include "sessions/worker.h"

struct workers {
    struct loop_group *loops;
    struct worker_env env;
    struct worker *list[]; /* see note: size in engine/loop_group.h */
};

static int workers_add(struct workers *ws, unsigned first, unsigned end)
{
    int rc = 0;

    for (unsigned i = first; i < end && rc == 0; i++)
        rc = worker_create(&ws->list[i], loop_group_at(ws->loops, i), &ws->env);
    return rc;
}

int workers_create(struct workers **out, struct loop_group *loops, const struct worker_env *env)
{
    struct workers *ws = calloc(1, sizeof(*ws) + loop_group_max(loops) * sizeof(ws->list[0]));
    int rc;

    if (!ws)
        return -ENOMEM;
    ws->loops = loops;
    ws->env = *env;
    *out = ws;
    rc = workers_add(ws, 0, loop_group_size(loops));
    return rc;
}

int workers_prepare(struct workers *ws, const struct loop_group_change *change)
{
    int rc = workers_add(ws, change->first, change->end);

    if (rc < 0)
        workers_cancel(ws, change);
    return rc;
}

/* Stop each loop before its worker is freed: the stop runs tasks of the worker. */
void workers_cancel(struct workers *ws, const struct loop_group_change *change)
{
    for (unsigned i = change->first; i < change->end; i++) {
        loop_stop(loop_group_at(ws->loops, i), 0, 0);
        worker_destroy(ws->list[i]);
        ws->list[i] = NULL;
    }
}

struct worker **workers_list(struct workers *ws)
{
    return ws->list;
}

void workers_give_back_pipes(struct workers *ws)
{
    for (unsigned i = 0; i < loop_group_size(ws->loops); i++)
        worker_give_back_pipes(ws->list[i]);
}

void workers_drain(struct workers *ws)
{
    for (unsigned i = 0; i < loop_group_size(ws->loops); i++)
        worker_drain(ws->list[i]);
}

void workers_destroy(struct workers *ws)
{
    for (unsigned i = 0; ws && i < loop_group_size(ws->loops); i++)
        worker_destroy(ws->list[i]);
    free(ws);
}
