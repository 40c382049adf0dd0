#include "engine/loop_group.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct loop_group {
    struct chooser chooser;
    unsigned n_loops;
    struct loop *loops[];
};

int loop_group_create(struct loop_group **out, const struct loop_group_conf *conf)
{
    struct loop_group *g;
    int rc;

    MUST(conf->n_loops > 0);
    g = calloc(1, sizeof(*g) + conf->n_loops * sizeof(g->loops[0]));
    if (!g)
        return -ENOMEM;
    chooser_init(&g->chooser, conf->chooser);
    while (g->n_loops < conf->n_loops) {
        struct loop_conf loop = conf->loop;
        char name[32];

        snprintf(name, sizeof(name), "%s-%u-%u", conf->name, conf->pool, g->n_loops + 1);
        loop.name = name;
        loop.affinity.pinned = conf->n_cpus > 0;
        loop.affinity.cpu = loop.affinity.pinned ? conf->cpus[g->n_loops % conf->n_cpus] : 0;
        rc = loop_create(&g->loops[g->n_loops], &loop);
        if (rc < 0)
            goto err_destroy;
        g->n_loops++;
    }
    *out = g;
    return 0;

err_destroy:
    loop_group_destroy(g);
    return rc;
}

unsigned loop_group_size(const struct loop_group *g)
{
    return g->n_loops;
}

struct loop *loop_group_at(const struct loop_group *g, unsigned i)
{
    MUST(i < g->n_loops);
    return g->loops[i];
}

struct loop *loop_group_next(struct loop_group *g)
{
    return chooser_pick(&g->chooser, g->loops, g->n_loops);
}

enum loop_availability loop_group_availability(const struct loop_group *g)
{
    return chooser_availability(&g->chooser, g->loops, g->n_loops);
}

void loop_group_stop(struct loop_group *g, int64_t quiet_ns, int64_t timeout_ns)
{
    for (unsigned i = 0; i < g->n_loops; i++)
        loop_stop(g->loops[i], quiet_ns, timeout_ns);
}

int loop_group_join_until(struct loop_group *g, int64_t at_ns)
{
    int rc = 0;

    for (unsigned i = 0; i < g->n_loops; i++)
        if (loop_join_until(g->loops[i], at_ns) < 0)
            rc = -ETIMEDOUT;
    return rc;
}

enum loop_state loop_group_state(const struct loop_group *g)
{
    enum loop_state least = LOOP_TERMINATED;

    for (unsigned i = 0; i < g->n_loops; i++)
        if (loop_state(g->loops[i]) < least)
            least = loop_state(g->loops[i]);
    return least;
}

int loop_group_set_io_ratio(struct loop_group *g, unsigned io_ratio)
{
    int rc = 0;

    for (unsigned i = 0; i < g->n_loops && rc == 0; i++)
        rc = loop_set_io_ratio(g->loops[i], io_ratio);
    return rc;
}

void loop_group_destroy(struct loop_group *g)
{
    if (!g)
        return;
    for (unsigned i = 0; i < g->n_loops; i++)
        loop_destroy(g->loops[i]);
    free(g);
}
