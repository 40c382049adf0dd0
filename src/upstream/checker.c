/* upstream/checker: groups, targets, life. */
#include "upstream/checker.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "upstream/checker_internal.h"

/* ---- groups and targets ---- */

static bool checker_is_current(const struct checker *k)
{
    return loop_is_current(k->net->loop);
}

int checker_add(struct checker_target **out, struct checker_group *g,
                const struct checker_target_conf *conf)
{
    struct checker *k = g->checker;
    struct checker_target *t;
    int64_t now_ns = clock_now_ns();

    MUST(checker_is_current(k));
    if (k->stopped)
        return -ESHUTDOWN;
    t = calloc(1, sizeof(*t));
    if (!t)
        return -ENOMEM;
    t->group = g;
    t->conf = *conf;
    timer_init(&t->timer, &checker_timer_type);
    list_init(&t->link);
    list_init(&t->waiting);
    health_init(&t->health, &g->conf.health, k->conf.seed + k->n_added, now_ns);
    list_append(&g->targets, &t->link);
    checker_resize(g, 1);
    checker_count(t);
    k->n_undecided += !t->health.is_decided;
    t->first_ns = health_first_ns(&g->conf.health, k->n_added++);
    checker_schedule(t, t->health.is_up ? clock_add_ns(now_ns, t->first_ns) : now_ns);
    *out = t;
    return 0;
}

void checker_uncount(struct checker_target *t)
{
    t->group->n_used -= t->is_used;
    t->group->n_up -= t->is_up;
    t->is_used = t->is_up = false;
}

void checker_count(struct checker_target *t)
{
    checker_uncount(t);
    t->is_used = endpoint_is_used(t->conf.endpoint);
    t->is_up = t->is_used && t->health.is_up;
    t->group->n_used += t->is_used;
    t->group->n_up += t->is_up;
}

void checker_decided(struct checker *k)
{
    if (--k->n_undecided == 0 && k->conf.decided && !k->stopped)
        k->conf.decided(k->conf.cookie);
}

/* Free ${t}; its timer is not cancelled. */
static void checker_free(struct checker_target *t)
{
    struct checker_group *g = t->group;

    checker_unwait(t);
    list_remove(&t->link);
    checker_uncount(t);
    if (!t->health.is_decided)
        checker_decided(g->checker);
    checker_resize(g, -1);
    free(t);
}

void checker_remove(struct checker_target *t)
{
    struct checker *k = t->group->checker;

    MUST(checker_is_current(k));
    loop_cancel(k->net->loop, &t->timer);
    if (t->slot) {
        t->slot->target = NULL;
        checker_end_one(t->group);
        check_cancel(&t->slot->check);
    }
    checker_free(t);
}

void checker_retry_now(struct checker_target *t)
{
    MUST(checker_is_current(t->group->checker));
    if (!t->has_no_address || !list_empty(&t->waiting)) /* already due */
        return;
    loop_cancel(t->group->checker->net->loop, &t->timer);
    checker_schedule(t, clock_now_ns());
}

void checker_stats(const struct checker_target *t, struct checker_stats *out)
{
    MUST(checker_is_current(t->group->checker));
    *out = t->stats;
    out->is_up = t->health.is_up;
    out->since_at_ns = t->health.since_at_ns;
}

void checker_load(const struct checker *k, struct checker_load *out)
{
    MUST(checker_is_current(k));
    *out = (struct checker_load){.targets = k->n_targets,
                                 .under_way = k->under_way,
                                 .waiting = k->n_waiting,
                                 .undecided = k->n_undecided};
}

int checker_group_open(struct checker_group **out, struct checker *k,
                       const struct checker_group_conf *conf)
{
    struct checker_group *g;
    int rc;

    MUST(checker_is_current(k));
    g = calloc(1, sizeof(*g));
    if (!g)
        return -ENOMEM;
    rc = check_script_init(&g->script, &conf->check);
    if (rc < 0) {
        free(g);
        return rc;
    }
    g->checker = k;
    g->conf = *conf;
    list_init(&g->targets);
    list_init(&g->waiting);
    list_init(&g->turn);
    list_init(&g->link);
    list_append(&k->groups, &g->link);
    *out = g;
    return 0;
}

/* ---- life ---- */

/* Cancel all checks as the loop shuts down; this turn's reap step closes their descriptors. */
static void checker_run_stop(struct task *task)
{
    struct checker *k = CONTAINER_OF(task, struct checker, at_stop);

    k->stopped = true;
    for (unsigned i = 0; i < k->n_slots; i++)
        check_cancel(&k->slots[i].check);
}

static void checker_drop_stop(struct task *task)
{
    (void)task; /* the loop never ran: nothing to cancel */
}

static const struct task_type checker_stop_type = {
    .name = "end health checks", .run = checker_run_stop, .drop = checker_drop_stop};

int checker_create(struct checker **out, struct netloop *net, const struct checker_conf *conf)
{
    struct checker *k;

    MUST(conf->max_under_way > 0);
    k = calloc(1, sizeof(*k) + conf->max_under_way * sizeof(k->slots[0]));
    if (!k)
        return -ENOMEM;
    k->net = net;
    k->conf = *conf;
    list_init(&k->groups);
    list_init(&k->turns);
    list_init(&k->free);
    timer_init(&k->retry, &checker_retry_type);
    k->at_stop.type = &checker_stop_type;
    loop_at_stop(net->loop, &k->at_stop);
    *out = k;
    return 0;
}

static void checker_free_group(struct checker_group *g)
{
    list_for_each_safe (node, &g->targets)
        checker_free(LIST_ENTRY(node, struct checker_target, link));
    list_remove(&g->link);
    free(g);
}

void checker_destroy(struct checker *k)
{
    if (!k)
        return;
    k->stopped = true;
    MUST(loop_state(k->net->loop) == LOOP_TERMINATED && k->under_way == 0);
    list_for_each_safe (node, &k->groups)
        checker_free_group(LIST_ENTRY(node, struct checker_group, link));
    free(k);
}
