/* check/checker: create, change and free checker, groups and targets. */
#include "check/checker.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "check/checker_internal.h"

static bool checker_is_current(const struct checker *k)
{
    return loop_is_current(k->net->loop);
}

/* True on the loop's thread, and while no thread runs the loop. */
static bool checker_is_owned(const struct checker *k)
{
    enum loop_state state = loop_state(k->net->loop);

    return checker_is_current(k) || state == LOOP_NOT_STARTED || state == LOOP_TERMINATED;
}

int checker_target_create(struct checker_target **out)
{
    struct checker_target *t = calloc(1, sizeof(*t));

    if (!t)
        return -ENOMEM;
    list_init(&t->link);
    list_init(&t->waiting);
    *out = t;
    return 0;
}

void checker_target_destroy(struct checker_target *t)
{
    MUST(!t || !checker_has(t));
    free(t);
}

bool checker_has(const struct checker_target *t)
{
    return t->group != NULL;
}

bool checker_is_undecided(const struct checker_target *t)
{
    return t->group && t->is_undecided;
}

/* A server that is up when its checks begin stays up until they fail; see endpoint.is_checked. */
static enum health_initial checker_initial(const struct checker_target *t)
{
    enum health_initial initial = t->group->rules->conf.health.initial;

    if ((endpoint_load(t->conf.endpoint) & ENDPOINT_DOWN) == 0)
        return atomic_load_explicit(&t->conf.endpoint->is_checked, memory_order_relaxed)
                   ? HEALTH_STARTS_KNOWN_UP
                   : HEALTH_STARTS_UP;
    return initial == HEALTH_STARTS_UP ? HEALTH_STARTS_DOWN : initial;
}

/* Combine the rules of ${r} with the target's own values. */
static void checker_use_health(struct checker_target *t, const struct checker_rules *r)
{
    struct health_conf *h = &t->health_conf;

    *h = r->conf.health;
    h->rise = t->conf.rise > 0 ? t->conf.rise : h->rise;
    h->fall = t->conf.fall > 0 ? t->conf.fall : h->fall;
    if (t->conf.interval_ns == 0)
        return;
    h->interval_ns = t->conf.interval_ns;
    if (h->fast_interval_ns > h->interval_ns)
        h->fast_interval_ns = h->interval_ns;
}

int checker_add(struct checker_target *t, struct checker_group *g,
                const struct checker_target_conf *conf)
{
    struct checker *k = g->checker;
    int64_t now_ns = clock_now_ns();

    MUST(checker_is_current(k) && !checker_has(t) && g->rules);
    if (k->stopped)
        return -ESHUTDOWN;
    *t = (struct checker_target){.group = g, .conf = *conf, .nth = k->n_added++};
    timer_init(&t->timer, &checker_timer_type);
    list_init(&t->link);
    list_init(&t->waiting);
    checker_use_health(t, g->rules);
    health_init(&t->health, &t->health_conf, checker_initial(t), k->seed + t->nth, now_ns);
    t->starts_up = t->health.is_up;
    list_append(&g->targets, &t->link);
    checker_resize(g, 1);
    checker_count(t);
    t->is_undecided = !t->starts_up && g->rules->conf.health.initial != HEALTH_STARTS_UP;
    g->n_undecided += t->is_undecided;
    t->first_ns = health_first_ns(&t->health_conf, t->nth);
    checker_schedule(t, t->starts_up ? clock_add_ns(now_ns, t->first_ns) : now_ns);
    return 0;
}

/* Bring the next check forward if the interval became shorter. */
static void checker_hurry(struct checker_target *t)
{
    const struct health_conf *health = t->health.conf;
    int64_t now_ns = clock_now_ns();

    t->first_ns = health_first_ns(health, t->nth);
    if (t->slot || !list_empty(&t->waiting) ||
        t->due_at_ns <= clock_add_ns(now_ns, health->interval_ns))
        return;
    loop_cancel(t->group->checker->net->loop, &t->timer);
    checker_schedule(t, clock_add_ns(now_ns, t->first_ns));
}

void checker_use(struct checker_target *t, const struct checker_target_conf *conf)
{
    MUST(checker_is_current(t->group->checker) && conf->endpoint == t->conf.endpoint);
    t->conf = *conf;
    checker_use_health(t, t->group->rules);
    checker_hurry(t);
    checker_count(t);
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

void checker_decided(struct checker_group *g)
{
    if (--g->n_undecided == 0 && g->conf.decided && !g->checker->stopped)
        g->conf.decided(g->conf.cookie);
}

unsigned checker_group_undecided(const struct checker_group *g)
{
    return g->n_undecided;
}

/* Remove ${t} from its group. Its timer must not be running. */
static void checker_leave(struct checker_target *t)
{
    struct checker_group *g = t->group;

    checker_unwait(t);
    list_remove(&t->link);
    checker_uncount(t);
    checker_resize(g, -1);
    t->group = NULL;
    if (t->is_undecided)
        checker_decided(g);
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
        t->slot = NULL;
    }
    checker_leave(t);
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
    *out = (struct checker_load){
        .targets = k->n_targets, .under_way = k->under_way, .waiting = k->n_waiting};
}

int checker_rules_create(struct checker_rules **out, const struct checker_rules_conf *conf)
{
    struct checker_rules *r = malloc(sizeof(*r));
    int rc;

    if (!r)
        return -ENOMEM;
    rc = check_script_init(&r->script, &conf->check);
    if (rc < 0) {
        free(r);
        return rc;
    }
    ref_init(&r->references);
    r->conf = *conf;
    (void)arena_hold(conf->memory);
    *out = r;
    return 0;
}

struct checker_rules *checker_rules_hold(struct checker_rules *r)
{
    ref_hold(&r->references);
    return r;
}

void checker_rules_release(struct checker_rules *r)
{
    if (!r || !ref_release(&r->references))
        return;
    check_script_end(&r->script);
    arena_release(r->conf.memory);
    free(r);
}

void checker_group_use(struct checker_group *g, struct checker_rules *r)
{
    MUST(checker_is_current(g->checker));
    list_for_each (node, &g->targets) {
        struct checker_target *t = LIST_ENTRY(node, struct checker_target, link);

        checker_use_health(t, r);
        checker_hurry(t);
    }
    checker_rules_release(g->rules);
    g->rules = r;
}

int checker_group_create(struct checker_group **out, struct checker *k,
                         const struct checker_group_conf *conf)
{
    struct checker_group *g = calloc(1, sizeof(*g));

    MUST(checker_is_owned(k));
    if (!g)
        return -ENOMEM;
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

static void checker_free_group(struct checker_group *g)
{
    list_remove(&g->link);
    checker_rules_release(g->rules);
    free(g);
}

void checker_group_close(struct checker_group *g)
{
    MUST(checker_is_owned(g->checker));
    list_for_each_safe (node, &g->targets)
        checker_remove(LIST_ENTRY(node, struct checker_target, link));
    checker_free_group(g);
}

static void checker_move(struct checker_target *t, struct checker_group *g)
{
    struct checker_group *from = t->group;
    bool is_waiting = !list_empty(&t->waiting);

    checker_unwait(t);
    checker_uncount(t);
    checker_resize(from, -1);
    from->n_undecided -= t->is_undecided;
    g->n_undecided += t->is_undecided;
    if (t->slot) {
        checker_end_one(from);
        g->under_way++;
    }
    list_remove(&t->link);
    list_append(&g->targets, &t->link);
    t->group = g;
    checker_use_health(t, g->rules);
    checker_resize(g, 1);
    checker_count(t);
    if (is_waiting)
        checker_wait(t);
}

void checker_group_take(struct checker_group *g, struct checker_group *from)
{
    MUST(checker_is_current(g->checker));
    list_for_each_safe (node, &from->targets)
        checker_move(LIST_ENTRY(node, struct checker_target, link), g);
}

/* Cancel all checks when the loop shuts down; this turn's reap step closes their descriptors. */
static void checker_run_stop(struct task *task)
{
    struct checker *k = CONTAINER_OF(task, struct checker, at_stop);

    k->stopped = true;
    list_for_each (node, &k->blocks) {
        struct checker_block *block = LIST_ENTRY(node, struct checker_block, link);

        for (unsigned i = 0; i < block->n_used; i++)
            check_cancel(&block->slots[i].check);
    }
}

/* No drop(): when the loop never ran, there is nothing to cancel. */
static const struct task_type checker_stop_type = {.name = "end health checks",
                                                   .run = checker_run_stop};

int checker_create(struct checker **out, struct netloop *net, uint64_t seed)
{
    struct checker *k = calloc(1, sizeof(*k));

    if (!k)
        return -ENOMEM;
    k->net = net;
    k->seed = seed;
    list_init(&k->groups);
    list_init(&k->turns);
    list_init(&k->blocks);
    list_init(&k->free);
    timer_init(&k->retry, &checker_retry_type);
    k->at_stop.type = &checker_stop_type;
    loop_at_stop(net->loop, &k->at_stop);
    *out = k;
    return 0;
}

int checker_reserve(struct checker *k, unsigned max_under_way)
{
    unsigned n = max_under_way > k->n_slots ? max_under_way - k->n_slots : 0;
    struct checker_block *block;

    if (n == 0)
        return 0;
    block = calloc(1, sizeof(*block) + n * sizeof(block->slots[0]));
    if (!block)
        return -ENOMEM;
    block->n = n;
    list_init(&block->link);
    list_append(&k->blocks, &block->link);
    k->n_slots += n;
    return 0;
}

void checker_set_limit(struct checker *k, unsigned max_under_way)
{
    MUST(max_under_way <= k->n_slots);
    k->max_under_way = max_under_way;
    k->share = 0;
    if (loop_is_current(k->net->loop))
        checker_feed(k);
}

static void checker_forget_group(struct checker_group *g)
{
    list_for_each_safe (node, &g->targets)
        checker_leave(LIST_ENTRY(node, struct checker_target, link));
    checker_free_group(g);
}

void checker_destroy(struct checker *k)
{
    if (!k)
        return;
    k->stopped = true;
    MUST(loop_state(k->net->loop) == LOOP_TERMINATED && k->under_way == 0);
    list_for_each_safe (node, &k->groups)
        checker_forget_group(LIST_ENTRY(node, struct checker_group, link));
    list_for_each_safe (node, &k->blocks)
        free(LIST_ENTRY(node, struct checker_block, link));
    free(k);
}
