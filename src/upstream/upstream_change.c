#include "upstream/upstream_change.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/grace.h"
#include "upstream/membership_change.h"
#include "upstream/upstream_internal.h"

/*
 * Replaced configurations: from the first number on, a change wakes workers that sleep, so that its
 * grace period ends; from the second on, further changes should wait.
 */
#define UPSTREAM_CHANGE_WAKES 8
#define UPSTREAM_CHANGE_WAITS 64

struct upstream_change {
    struct upstream *up; /* after commit: a reference, see note: users */
    const struct upstream_conf *conf;
    const struct upstream_conf *before; /* after commit: the replaced configuration */
    struct membership_change *members;
    struct grace *grace; /* NULL: no workers, in tests */
};

/* Called when no worker uses the old configuration any more, and all see upstream.bounded. */
static void upstream_change_over(void *cookie)
{
    struct upstream_change *change = cookie;

    membership_change_end(change->members);
    upstream_drop_conf(change->before);
    atomic_fetch_sub(&change->up->n_replaced, 1);
    upstream_serve(change->up);
    upstream_release(change->up);
    free(change);
}

int upstream_change_prepare(struct upstream_change **out, struct upstream *up,
                            const struct upstream_conf *conf)
{
    struct upstream_change *change = calloc(1, sizeof(*change));
    int rc;

    if (!change)
        return -ENOMEM;
    change->up = up;
    change->conf = upstream_keep_conf(conf);
    rc = change->conf ? 0 : -ENOMEM;
    if (rc < 0)
        goto err_free;
    rc = membership_change_prepare(&change->members, &up->membership, change->conf);
    if (rc < 0)
        goto err_conf;
    if (up->workers)
        rc = grace_create(&change->grace, up->workers, upstream_change_over, change);
    if (rc < 0)
        goto err_members;
    *out = change;
    return 0;

err_members:
    membership_change_cancel(change->members);
err_conf:
    upstream_drop_conf(change->conf);
err_free:
    free(change);
    return rc;
}

struct server_line *upstream_change_line(const struct upstream_change *change, const char *id)
{
    return membership_change_line(change->members, id);
}

int upstream_change_places(struct upstream_change *change, const struct server_line *line,
                           const struct membership_place *places, unsigned n)
{
    return membership_change_places(change->members, line, places, n);
}

int upstream_change_build(struct upstream_change *change)
{
    return membership_change_build(change->members);
}

int upstream_change_each_new(const struct upstream_change *change, membership_visit *visit,
                             void *cookie)
{
    return membership_change_each_new(change->members, visit, cookie);
}

static void upstream_change_limits(struct upstream *up, const struct upstream_conf *conf)
{
    ejection_group_use(&up->ejection, &conf->ejection);
    retry_budget_set(&up->retry_budget, conf->retry_budget);
    wait_queue_set(&up->waiting, conf->queue_length, conf->queue_timeout_ns);
    if (upstream_is_bounded(conf))
        atomic_store(&up->bounded, true);
}

bool upstream_change_is_settled(const struct upstream *up)
{
    return atomic_load(&up->n_replaced) < UPSTREAM_CHANGE_WAITS;
}

void upstream_change_commit(struct upstream_change *change)
{
    struct upstream *up = upstream_hold(change->up);
    unsigned n_replaced = atomic_fetch_add(&up->n_replaced, 1);

    change->before = atomic_exchange(&up->conf, change->conf);
    upstream_spares_changed(&up->spares, change->before);
    upstream_change_limits(up, change->conf);
    membership_change_commit(change->members);
    upstream_serve(up);
    upstream_spares_refresh(&up->spares);
    if (change->grace && n_replaced < UPSTREAM_CHANGE_WAKES)
        grace_begin(change->grace);
    else if (change->grace)
        grace_begin_now(change->grace);
    else
        upstream_change_over(change);
}

void upstream_change_cancel(struct upstream_change *change)
{
    if (!change)
        return;
    grace_destroy(change->grace);
    membership_change_cancel(change->members);
    upstream_drop_conf(change->conf);
    free(change);
}
