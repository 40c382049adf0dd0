#include "engine/loop_group.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/loop_internal.h"
#include "engine/move_gate.h"

struct loop_group {
    struct chooser chooser;
    struct move_gate moves;
    atomic_uint size; /* for `size` to `goal_ns` see note: size */
    atomic_uint in_use;
    atomic_bool stopping;
    atomic_uint io_ratio;
    _Atomic int64_t goal_ns;
    unsigned n_made; /* loops created; above `size` during a change */
    unsigned max_loops;
    char name[16];
    unsigned pool;
    struct loop_conf loop;
    unsigned *cpus;
    unsigned n_cpus;
    struct loop *loops[]; /* NULL from n_made up */
};

static int loop_group_add(struct loop_group *g)
{
    struct loop_conf loop = g->loop;
    char name[32];
    int rc;

    snprintf(name, sizeof(name), "%s-%u-%u", g->name, g->pool, g->n_made + 1);
    loop.name = name;
    loop.affinity.pinned = g->n_cpus > 0;
    loop.affinity.cpu = loop.affinity.pinned ? g->cpus[g->n_made % g->n_cpus] : 0;
    rc = loop_create(&g->loops[g->n_made], &loop);
    if (rc == 0)
        g->n_made++;
    return rc;
}

int loop_group_create(struct loop_group **out, const struct loop_group_conf *conf)
{
    unsigned max = conf->max_loops > conf->n_loops ? conf->max_loops : conf->n_loops;
    struct loop_group_change all;
    struct loop_group *g;
    int rc;

    g = calloc(1, sizeof(*g) + max * sizeof(g->loops[0]) + conf->n_cpus * sizeof(g->cpus[0]));
    if (!g)
        return -ENOMEM;
    chooser_init(&g->chooser, conf->chooser);
    atomic_init(&g->io_ratio, conf->loop.budget.io_ratio);
    atomic_init(&g->goal_ns, conf->loop.budget.goal_ns);
    g->max_loops = max;
    snprintf(g->name, sizeof(g->name), "%s", conf->name);
    g->pool = conf->pool;
    g->loop = conf->loop;
    g->cpus = (unsigned *)&g->loops[max];
    g->n_cpus = conf->n_cpus;
    for (unsigned i = 0; i < g->n_cpus; i++)
        g->cpus[i] = conf->cpus[i];
    rc = loop_group_prepare(g, conf->n_loops, &all);
    if (rc < 0) {
        loop_group_destroy(g);
        return rc;
    }
    loop_group_commit(&all);
    *out = g;
    return 0;
}

int loop_group_prepare(struct loop_group *g, unsigned n, struct loop_group_change *change)
{
    int rc = 0;

    MUST(n <= g->max_loops && g->n_made == loop_group_size(g));
    *change = (struct loop_group_change){.group = g, .n_in_use = n, .first = g->n_made};
    while (g->n_made < n && rc == 0)
        rc = loop_group_add(g);
    change->end = g->n_made;
    if (rc < 0)
        loop_group_cancel(change);
    return rc;
}

/*
 * See note: size. New loops can be chosen only after the last store, so loop_stop() is called while
 * the new loops have no threads.
 */
void loop_group_commit(const struct loop_group_change *change)
{
    struct loop_group *g = change->group;

    MUST(change->end == g->n_made);
    atomic_store(&g->size, change->end);
    for (unsigned i = change->first; i < change->end; i++) {
        MUST(loop_set_io_ratio(g->loops[i], atomic_load(&g->io_ratio)) == 0);
        loop_set_queue_wait_goal(g->loops[i], atomic_load(&g->goal_ns));
        if (atomic_load(&g->stopping))
            loop_stop(g->loops[i], 0, 0);
    }
    atomic_store(&g->in_use, change->n_in_use);
}

void loop_group_cancel(const struct loop_group_change *change)
{
    struct loop_group *g = change->group;

    MUST(loop_group_size(g) == change->first);
    while (g->n_made > change->first) {
        loop_destroy(g->loops[--g->n_made]);
        g->loops[g->n_made] = NULL;
    }
}

unsigned loop_group_made(const struct loop_group *g)
{
    return g->n_made;
}

unsigned loop_group_size(const struct loop_group *g)
{
    return atomic_load(&g->size);
}

unsigned loop_group_in_use(const struct loop_group *g)
{
    return atomic_load(&g->in_use);
}

unsigned loop_group_max(const struct loop_group *g)
{
    return g->max_loops;
}

bool loop_group_uses(const struct loop_group *g, const struct loop *loop)
{
    unsigned n = loop_group_in_use(g);

    for (unsigned i = 0; i < n; i++)
        if (loop_group_at(g, i) == loop)
            return true;
    return false;
}

struct move_gate *loop_group_moves(struct loop_group *g)
{
    return &g->moves;
}

struct loop *loop_group_at(const struct loop_group *g, unsigned i)
{
    MUST(i < g->max_loops && g->loops[i]);
    return g->loops[i];
}

struct loop *loop_group_next(struct loop_group *g)
{
    return chooser_pick(&g->chooser, g->loops, loop_group_in_use(g));
}

int loop_group_start(struct loop_group *g)
{
    unsigned n = loop_group_in_use(g);
    int rc = -EAGAIN;

    for (unsigned i = 0; i < n && rc < 0; i++)
        rc = loop_start(g->loops[i]);
    return rc;
}

struct loop *loop_group_next_in(struct loop_group *g, struct chooser_rounds *rounds)
{
    return chooser_pick_in(&g->chooser, rounds, g->loops, loop_group_in_use(g));
}

struct loop *loop_group_near(struct loop_group *g)
{
    return chooser_pick_near(&g->chooser, loop_current(), g->loops, loop_group_in_use(g));
}

enum loop_availability loop_group_availability(const struct loop_group *g)
{
    return chooser_availability(&g->chooser, g->loops, loop_group_in_use(g));
}

void loop_group_stop(struct loop_group *g, int64_t quiet_ns, int64_t timeout_ns)
{
    unsigned n;

    atomic_store(&g->stopping, true); /* see note: size */
    n = loop_group_size(g);
    for (unsigned i = 0; i < n; i++)
        loop_stop(g->loops[i], quiet_ns, timeout_ns);
}

int loop_group_join_until(struct loop_group *g, int64_t at_ns)
{
    unsigned n = loop_group_size(g);
    int rc = 0;

    for (unsigned i = 0; i < n; i++)
        if (loop_join_until(g->loops[i], at_ns) < 0)
            rc = -ETIMEDOUT;
    return rc;
}

enum loop_state loop_group_state(const struct loop_group *g)
{
    enum loop_state least = LOOP_TERMINATED;
    unsigned n = loop_group_size(g);

    for (unsigned i = 0; i < n; i++)
        if (loop_state(g->loops[i]) < least)
            least = loop_state(g->loops[i]);
    return least;
}

int loop_group_set_io_ratio(struct loop_group *g, unsigned io_ratio)
{
    unsigned n;

    if (io_ratio > 100)
        return -EINVAL;
    atomic_store(&g->io_ratio, io_ratio); /* see note: size */
    n = loop_group_size(g);
    for (unsigned i = 0; i < n; i++)
        MUST(loop_set_io_ratio(g->loops[i], io_ratio) == 0);
    return 0;
}

void loop_group_set_queue_wait_goal(struct loop_group *g, int64_t goal_ns)
{
    unsigned n;

    atomic_store(&g->goal_ns, goal_ns); /* see note: size */
    n = loop_group_size(g);
    for (unsigned i = 0; i < n; i++)
        loop_set_queue_wait_goal(g->loops[i], goal_ns);
}

void loop_group_destroy(struct loop_group *g)
{
    if (!g)
        return;
    for (unsigned i = 0; i < g->n_made; i++)
        loop_destroy(g->loops[i]);
    free(g);
}
