/* check/checker_run: run checks and process results. */
#include <string.h>

#include "balance/upstream_server.h"
#include "base/clock.h"
#include "base/log.h"
#include "check/checker_internal.h"

/* PAUSE: time to a retry when resources run out. CALM: time without errors that ends a shortage. */
#define CHECKER_PAUSE_NS (100 * NS_PER_MS)
#define CHECKER_CALM_NS  (1 * NS_PER_S)

#define CHECKER_LOG_INTERVAL_NS (60 * NS_PER_S)

/*
 * A check is late if it begins more than a tenth of the interval, and more than this minimum, after
 * it was due.
 */
#define CHECKER_LATE_PART   10
#define CHECKER_LATE_MIN_NS (100 * NS_PER_MS)

/* The loop wakes once for all checks due within a tick: this, or this part of the interval. */
#define CHECKER_TICK_NS   (20 * NS_PER_MS)
#define CHECKER_TICK_PART 24

static void checker_on_done(struct check *c);

static struct checker_slot *checker_new_slot(struct checker *k)
{
    list_for_each (node, &k->blocks) {
        struct checker_block *block = LIST_ENTRY(node, struct checker_block, link);
        struct checker_slot *slot = &block->slots[block->n_used];

        if (block->n_used == block->n)
            continue;
        block->n_used++;
        slot->checker = k;
        list_init(&slot->link);
        check_init(&slot->check, k->net, checker_on_done);
        return slot;
    }
    MUST(!"a slot for each check at once");
    return NULL;
}

static struct checker_slot *checker_take_slot(struct checker *k)
{
    struct checker_slot *slot;

    k->under_way++;
    if (list_empty(&k->free))
        return checker_new_slot(k);
    slot = LIST_FIRST(&k->free, struct checker_slot, link);
    list_remove(&slot->link);
    return slot;
}

/* Last in, first out: reuses cached memory. */
static void checker_give_slot(struct checker *k, struct checker_slot *slot)
{
    list_append(k->free.next, &slot->link);
    k->under_way--;
}

/* The first end of a tick when ${t} is due. */
static int64_t checker_tick(const struct checker_target *t)
{
    int64_t part_ns = t->health_conf.interval_ns / CHECKER_TICK_PART;
    int64_t tick_ns = part_ns < CHECKER_TICK_NS ? part_ns : CHECKER_TICK_NS;

    return tick_ns > 0 ? (t->due_at_ns + tick_ns - 1) / tick_ns * tick_ns : t->due_at_ns;
}

void checker_schedule(struct checker_target *t, int64_t at_ns)
{
    struct loop *loop = t->group->checker->net->loop;
    int64_t now_ns = clock_now_ns();

    t->due_at_ns = at_ns > now_ns ? at_ns : now_ns;
    loop_schedule(loop, &t->timer, at_ns > now_ns ? checker_tick(t) - now_ns : 0);
}

static void checker_end(struct checker_target *t)
{
    t->slot = NULL;
    checker_end_one(t->group);
}

static int64_t checker_patience_ns(const struct health_conf *conf)
{
    int64_t part_ns = conf->interval_ns / CHECKER_LATE_PART;

    return part_ns > CHECKER_LATE_MIN_NS ? part_ns : CHECKER_LATE_MIN_NS;
}

static void checker_note_late(struct checker_target *t)
{
    struct checker_group *g = t->group;
    const struct checker *k = g->checker;
    int64_t late_ns = clock_now_ns() - loop_due_ns(k->net->loop, t->due_at_ns, 0);
    unsigned suppressed;

    if (late_ns <= checker_patience_ns(&t->health_conf))
        return;
    if (g->conf.n_late)
        atomic_fetch_add_explicit(g->conf.n_late, 1, memory_order_relaxed);
    if (log_allowed(&g->late_limit, CHECKER_LOG_INTERVAL_NS, &suppressed))
        log_warning(
            "upstream %s: server %s: a check begins %.1f s late: checks under way: %u for this "
            "upstream (at most %u), %u in total (at most %u); waiting in total: %u%s",
            g->conf.name, t->conf.endpoint->name, (double)late_ns / NS_PER_S, g->under_way,
            k->share, k->under_way, k->max_under_way, k->n_waiting, LOG_SUPPRESSED(suppressed));
}

static void checker_begin(struct checker_target *t, struct checker_slot *slot)
{
    unsigned n = checker_copy_addresses(t, slot);

    t->has_no_address = n == 0;
    if (n == 0) { /* sessions have no address either; the resolver has logged why */
        checker_give_slot(slot->checker, slot);
        checker_end(t);
        checker_schedule(t, clock_add_ns(clock_now_ns(), health_interval_ns(&t->health)));
        return;
    }
    t->slot = slot;
    slot->target = t;
    slot->rules = checker_rules_hold(t->group->rules);
    checker_note_late(t);
    checker_choose_header(t, slot);
    slot->check.server = upstream_server_of(t->conf.endpoint);
    check_start(&slot->check, &slot->rules->script, slot->addresses, n);
}

void checker_feed(struct checker *k)
{
    while (!k->stopped && !k->paused && k->under_way < k->max_under_way) {
        struct checker_target *t = checker_next(k);

        if (!t)
            break;
        checker_begin(t, checker_take_slot(k));
    }
}

static void checker_warm(struct checker_target *t, int64_t now_ns)
{
    struct endpoint *e = t->conf.endpoint;

    if (t->group->rules->conf.slow_start_ns == 0)
        return;
    t->warming = true;
    atomic_store_explicit(&e->warming_since_ns, now_ns, memory_order_relaxed);
    (void)endpoint_set_flag(e, ENDPOINT_WARMING);
}

/* End slow start if its time is over: another thread may have restarted it. */
static void checker_look_warm(struct checker_target *t, int64_t now_ns)
{
    struct endpoint *e = t->conf.endpoint;

    if (!t->warming || now_ns - atomic_load_explicit(&e->warming_since_ns, memory_order_relaxed) <
                           t->group->rules->conf.slow_start_ns)
        return;
    t->warming = false;
    (void)endpoint_clear_flag(e, ENDPOINT_WARMING);
}

/* For a server without weight only a notice: it has no sessions to lose. */
static enum log_level checker_down_level(const struct checker_target *t)
{
    return endpoint_is_used(t->conf.endpoint) ? LOG_LEVEL_WARNING : LOG_LEVEL_NOTICE;
}

static void checker_log_first_failed(const struct checker_target *t,
                                     const struct check_result *result)
{
    const struct checker_group *g = t->group;
    char text[CHECK_TEXT_BYTES];

    log_event(LOG_SERVER, checker_down_level(t),
              "upstream %s: server %s: down: its first check failed: %s; servers up: %u of %u",
              g->conf.name, t->conf.endpoint->name, check_describe(text, sizeof(text), result),
              g->n_up, g->n_used);
}

static void checker_log_failed(const struct checker_target *t, const struct check_result *result)
{
    const struct checker_group *g = t->group;
    char text[CHECK_TEXT_BYTES];

    log_event(LOG_SERVER, checker_down_level(t),
              "upstream %s: server %s: down: checks failed in a row: %u, the last: %s; servers up: "
              "%u of %u",
              g->conf.name, t->conf.endpoint->name, t->health.changed_by,
              check_describe(text, sizeof(text), result), g->n_up, g->n_used);
}

/* The server comes up for the first time: restart a slow start under way, but begin none. */
static void checker_warm_first(struct checker_target *t, int64_t now_ns)
{
    if (endpoint_load(t->conf.endpoint) & ENDPOINT_WARMING)
        checker_warm(t, now_ns);
}

static void checker_log_up(const struct checker_target *t, bool is_first, int64_t down_ns)
{
    const struct checker_group *g = t->group;

    if (is_first)
        log_event(LOG_SERVER, LOG_LEVEL_NOTICE,
                  "upstream %s: server %s: up: its first check passed; servers up: %u of %u",
                  g->conf.name, t->conf.endpoint->name, g->n_up, g->n_used);
    else
        log_event(LOG_SERVER, LOG_LEVEL_NOTICE,
                  "upstream %s: server %s: up: checks passed in a row: %u, it was down for %.1f s; "
                  "servers up: %u of %u",
                  g->conf.name, t->conf.endpoint->name, t->health.changed_by,
                  (double)down_ns / NS_PER_S, g->n_up, g->n_used);
}

static void checker_came_up(struct checker_target *t, bool is_first, int64_t down_ns,
                            int64_t now_ns)
{
    if (t->was_up)
        checker_warm(t, now_ns); /* slow start begins before the server gets sessions */
    else
        checker_warm_first(t, now_ns);
    (void)endpoint_clear_flag(t->conf.endpoint, ENDPOINT_DOWN);
    checker_log_up(t, is_first, down_ns);
}

/* Report a change; ${before} is the state before the check. May free the target. */
static void checker_tell(struct checker_target *t, enum health_change change,
                         const struct health *before, const struct check_result *result)
{
    const struct checker_group_conf *conf = &t->group->conf;
    int64_t now_ns = t->health.since_at_ns;

    if (change == HEALTH_WENT_DOWN)
        (void)endpoint_set_flag(t->conf.endpoint, ENDPOINT_DOWN);
    if (change == HEALTH_CAME_UP)
        checker_came_up(t, !before->is_decided, now_ns - before->since_at_ns, now_ns);
    else if (!before->is_known)
        checker_log_first_failed(t, result);
    else
        checker_log_failed(t, result);
    if (change == HEALTH_STAYS_DOWN)
        return;
    if (conf->changed)
        conf->changed(conf->cookie, t->conf.endpoint, change == HEALTH_CAME_UP);
}

/* Targets that start down were all checked at once, so spread their second checks. */
static int64_t checker_interval_ns(struct checker_target *t)
{
    int64_t interval_ns = health_interval_ns(&t->health);
    bool is_spread = t->stats.checks > 1 || t->starts_up;

    return is_spread || t->first_ns == 0 || t->first_ns > interval_ns ? interval_ns : t->first_ns;
}

_Static_assert(ENDPOINT_WHY_BYTES >= CHECK_TEXT_BYTES, "no text of a check is cut");

static void checker_note_why(struct checker_target *t, const struct check_result *result)
{
    char text[CHECK_TEXT_BYTES];

    if (result->outcome != CHECK_PASSED)
        endpoint_set_why(t->conf.endpoint, check_describe(text, sizeof(text), result));
}

static void checker_note_check(struct checker_target *t, const struct check_result *result,
                               int64_t now_ns)
{
    struct endpoint *e = t->conf.endpoint;
    bool has_passed = result->outcome == CHECK_PASSED;

    checker_note_why(t, result);
    atomic_store_explicit(&e->check_ns, has_passed ? result->duration_ns : -1,
                          memory_order_relaxed);
    atomic_store_explicit(&e->checked_at_ns, now_ns, memory_order_relaxed);
    atomic_store_explicit(&e->is_checked, true, memory_order_relaxed);
}

/* Process a verdict. May free the target. */
static void checker_report(struct checker_target *t, const struct check_result *result,
                           int64_t began_at_ns, bool as_sessions)
{
    const struct health before = t->health;
    struct checker_group *g = t->group;
    int64_t now_ns = clock_now_ns();
    bool is_decided;
    enum health_change change;

    t->was_up |= t->health.is_up;
    change = health_report(&t->health, result->outcome == CHECK_PASSED, now_ns);
    checker_note_check(t, result, now_ns);
    checker_count(t);
    is_decided = t->is_undecided && (result->outcome != CHECK_PASSED || t->health.is_up);
    t->is_undecided &= !is_decided;

    checker_schedule(t, clock_add_ns(began_at_ns, checker_interval_ns(t)));
    checker_look_warm(t, now_ns);
    if (result->outcome == CHECK_PASSED && t->health.is_up && t->group->conf.passed)
        t->group->conf.passed(t->group->conf.cookie, t->conf.endpoint, as_sessions);
    if (change != HEALTH_SAME)
        checker_tell(t, change, &before, result);
    if (is_decided)
        checker_decided(g);
}

static void checker_pause(struct checker *k, int error)
{
    if (k->episode_at_ns == 0) {
        k->episode_at_ns = clock_now_ns();
        k->episode_errors = 0;
        log_event(LOG_PROCESS, LOG_LEVEL_WARNING,
                  "health checks: paused: %s; servers keep their state", strerror(-error));
    }
    k->episode_errors++;
    if (k->paused)
        return;
    k->paused = true;
    loop_cancel(k->net->loop, &k->retry);
    loop_schedule(k->net->loop, &k->retry, CHECKER_PAUSE_NS);
}

/* A shortage pauses all checks; if a local port is missing, only this target waits an interval. */
static void checker_undecided(struct checker_target *t, const struct check_result *result,
                              int64_t began_at_ns)
{
    struct checker *k = t->group->checker;
    unsigned suppressed;

    t->stats.undecided++;
    if (result->outcome == CHECK_NO_RESOURCES) {
        checker_pause(k, result->error);
        checker_wait(t);
        return;
    }
    checker_schedule(t, clock_add_ns(began_at_ns, health_interval_ns(&t->health)));
    if (log_allowed(&k->log_limit, CHECKER_LOG_INTERVAL_NS, &suppressed))
        log_warning("upstream %s: server %s: cannot be checked: %s; it keeps its state%s",
                    t->group->conf.name, t->conf.endpoint->name,
                    check_outcome_text(result->outcome), LOG_SUPPRESSED(suppressed));
}

static void checker_log_failure(const struct checker_target *t, const struct check_result *result)
{
    char text[CHECK_TEXT_BYTES];

    log_debug("upstream %s: server %s: a check failed after %.3f s: %s", t->group->conf.name,
              t->conf.endpoint->name, (double)result->duration_ns / NS_PER_S,
              check_describe(text, sizeof(text), result));
}

/* Process an ended check. May free the target. */
static void checker_account(struct checker_target *t, const struct check *c, bool as_sessions)
{
    const struct check_result result = c->result;
    enum check_verdict verdict = check_verdict(result.outcome);

    t->stats.checks++;
    t->stats.last = result.outcome;
    t->stats.last_duration_ns = result.duration_ns;
    if (verdict == CHECK_NEITHER) {
        checker_undecided(t, &result, c->began_at_ns);
        return;
    }
    if (t->group->conf.answered) {
        checker_schedule(t, clock_add_ns(c->began_at_ns, checker_interval_ns(t)));
        t->group->conf.answered(t->group->conf.cookie, t->conf.endpoint, c);
        return;
    }
    if (verdict == CHECK_AGAINST) {
        t->stats.failed++;
        checker_log_failure(t, &result);
    }
    checker_report(t, &result, c->began_at_ns, as_sessions);
}

static void checker_on_done(struct check *c)
{
    struct checker_slot *slot = CONTAINER_OF(c, struct checker_slot, check);
    struct checker *k = slot->checker;
    struct checker_target *t = slot->target;

    checker_rules_release(slot->rules);
    checker_give_slot(k, slot);
    if (t) {
        checker_end(t);
        if (!k->stopped)
            checker_account(t, c, slot->as_sessions);
    }
    checker_feed(k);
}

static void checker_run_timer(struct task *task)
{
    struct checker_target *t = TIMER_OWNER(task, struct checker_target, timer);
    struct checker *k = t->group->checker;

    MUST(!t->slot && list_empty(&t->waiting));
    checker_wait(t);
    checker_feed(k);
}

/* Resume checks. The next run, after CHECKER_CALM_NS without error, ends the shortage. */
static void checker_run_retry(struct task *task)
{
    struct checker *k = TIMER_OWNER(task, struct checker, retry);

    if (k->paused) {
        k->paused = false;
        loop_schedule(k->net->loop, &k->retry, CHECKER_CALM_NS);
        checker_feed(k);
        return;
    }
    log_event(LOG_PROCESS, LOG_LEVEL_NOTICE, "health checks: resumed after %.1f s; errors: %u",
              (double)(clock_now_ns() - k->episode_at_ns) / NS_PER_S, k->episode_errors);
    k->episode_at_ns = 0;
}

/* No drop(): checker_run_stop() has cancelled the checks. */
const struct task_type checker_timer_type = {.name = "health check", .run = checker_run_timer};

const struct task_type checker_retry_type = {.name = "health checks again",
                                             .run = checker_run_retry};
