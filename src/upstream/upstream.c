#include "upstream/upstream_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ref.h"
#include "base/arena.h"
#include "base/clock.h"
#include "engine/loop.h"
#include "engine/loop_group.h"

/* Time for first checks: at least, at most, and in addition to what the checks need. */
#define UPSTREAM_CHECKS_MIN_NS  (3 * NS_PER_S)
#define UPSTREAM_CHECKS_MAX_NS  (10 * NS_PER_S)
#define UPSTREAM_CHECKS_MORE_NS NS_PER_S

static void upstream_changed(struct endpoint_group *g)
{
    struct upstream *up = CONTAINER_OF(g, struct upstream, group);

    upstream_in_use_look(up);
    upstream_spares_refresh(&up->spares);
}

void upstream_log_unused(const struct upstream *up)
{
    const struct upstream_conf *conf = up->conf;

    for (unsigned i = 0; i < conf->n_servers; i++) {
        const struct upstream_server_conf *server = &conf->servers[i];

        if (!upstream_server_is_used(server))
            log_notice("upstream %s: server %s: gets no connections: %s", conf->name, server->id,
                       server->disabled ? "disabled" : "weight=0");
    }
}

int64_t upstream_first_checks_ns(const struct upstream_conf *conf)
{
    const struct health_conf *health = &conf->checks.health;
    int64_t interval_ns =
        health->fast_interval_ns > 0 ? health->fast_interval_ns : health->interval_ns;
    int64_t ns = clock_add_ns(conf->checks.check.timeout_ns, UPSTREAM_CHECKS_MORE_NS);

    for (unsigned i = 1;
         health->initial == HEALTH_STARTS_DOWN && i < health->rise && ns < UPSTREAM_CHECKS_MAX_NS;
         i++)
        ns = clock_add_ns(ns, interval_ns);
    if (ns < UPSTREAM_CHECKS_MIN_NS)
        return UPSTREAM_CHECKS_MIN_NS;
    return ns < UPSTREAM_CHECKS_MAX_NS ? ns : UPSTREAM_CHECKS_MAX_NS;
}

const struct upstream_conf *upstream_keep_conf(const struct upstream_conf *conf)
{
    struct upstream_conf *copy;

    if (!conf->memory)
        return conf;
    copy = arena_alloc(conf->memory, 1, sizeof(*copy));
    if (!copy)
        return NULL;
    *copy = *conf;
    copy->connect.memory = arena_hold(conf->memory);
    return copy;
}

void upstream_drop_conf(const struct upstream_conf *conf)
{
    arena_release(conf->memory);
}

bool upstream_is_bounded(const struct upstream_conf *conf)
{
    for (unsigned i = 0; i < conf->n_servers; i++)
        if (conf->servers[i].max_connections > 0)
            return true;
    return false;
}

int upstream_create(struct upstream **out, const struct upstream_conf *conf,
                    const struct upstream_env *env)
{
    struct upstream *up = calloc(1, sizeof(*up));
    int rc;

    if (!up)
        return -ENOMEM;
    if (env) {
        up->workers = env->workers;
        up->handshakes = env->handshakes;
        up->spares.ops = env->spares;
    }
    up->name = strdup(conf->name);
    conf = up->name ? upstream_keep_conf(conf) : NULL;
    if (!conf) {
        free(up->name);
        free(up);
        return -ENOMEM;
    }
    up->conf = conf;
    ref_init(&up->references);
    ejection_group_init(&up->ejection, &conf->ejection, conf->n_servers);
    atomic_init(&up->bounded, upstream_is_bounded(conf));
    retry_budget_init(&up->retry_budget, conf->retry_budget);
    wait_queue_init(&up->waiting, conf->queue_length, conf->queue_timeout_ns);
    up->group.changed = upstream_changed;
    upstream_in_use_init(up);
    upstream_state_init(&up->state);
    rc = membership_open(&up->membership, up);
    if (rc < 0) {
        upstream_destroy(up);
        return rc;
    }
    *out = up;
    return 0;
}

struct upstream *upstream_hold(struct upstream *up)
{
    ref_hold(&up->references);
    return up;
}

void upstream_release(struct upstream *up)
{
    MUST(!ref_release(&up->references)); /* the owner has one, see base/ref */
}

bool upstream_sweep_unused(struct upstream *up)
{
    return membership_sweep(&up->membership);
}

bool upstream_is_unused(const struct upstream *up)
{
    return ref_count(&up->references) == 1 && wait_queue_is_idle(&up->waiting);
}

void upstream_destroy(struct upstream *up)
{
    if (!up)
        return;
    wait_queue_close(&up->waiting);
    membership_close(&up->membership);
    upstream_state_close(&up->state);
    upstream_in_use_close(up);
    upstream_drop_conf(up->conf);
    free(up->name);
    free(up);
}

static bool upstream_may_have_queue(const struct upstream *up)
{
    return atomic_load_explicit(&up->bounded, memory_order_relaxed);
}

void upstream_serve(struct upstream *up)
{
    if (upstream_may_have_queue(up))
        wait_queue_serve(&up->waiting);
}

void upstream_pause(struct upstream *up, unsigned max_held, int64_t until_ns)
{
    atomic_store(&up->bounded, true);
    wait_queue_pause(&up->waiting, max_held, until_ns);
}

static void upstream_sweep(struct upstream *up)
{
    const struct server_set *set = membership_now(&up->membership);
    int64_t now_ns = clock_now_ns();

    if (!ejection_due(&up->ejection, now_ns))
        return;
    ejection_sweep_begin(&up->ejection);
    for (unsigned i = 0; i < set->n; i++) {
        struct upstream_server *server = set->servers[i];

        if (ejection_return(&up->ejection, &server->ejection, &server->endpoint, now_ns))
            log_event(LOG_SERVER, LOG_LEVEL_NOTICE, "upstream %s: server %s: ejection over",
                      up->name, server->name);
    }
    upstream_serve(up);
}

/*
 * Must a new session queue? Not if the queue is full: there may be a free server at which all
 * waiters have failed.
 */
static bool upstream_has_queue(const struct upstream *up)
{
    unsigned n = upstream_may_have_queue(up) ? wait_queue_length(&up->waiting) : 0;

    return n > 0 && n < up->conf->queue_length;
}

int upstream_pick(struct upstream *up, struct balancer_pick_state *pick,
                  struct upstream_server **out)
{
    struct endpoint *e;
    int rc;

    if (ejection_some_out(&up->ejection))
        upstream_sweep(up);
    if (upstream_has_queue(up) || hold_is_closed(&up->waiting.hold))
        return -EBUSY;
    rc = balancer_pick(membership_now(&up->membership)->balancer, pick, &e);
    if (rc == 0)
        *out = upstream_server_of(e);
    return rc;
}

/* Timer that ends an ejection for waiting sessions: there may be no pick to end it. */
struct upstream_return {
    struct timer timer;
    struct upstream *upstream;
};

static struct upstream_return *upstream_return_of(struct task *t)
{
    return TIMER_OWNER(t, struct upstream_return, timer);
}

static void upstream_run_return(struct task *t)
{
    struct upstream_return *r = upstream_return_of(t);

    upstream_sweep(r->upstream);
    upstream_release(r->upstream);
    free(r);
}

static void upstream_drop_return(struct task *t)
{
    struct upstream_return *r = upstream_return_of(t);

    upstream_release(r->upstream); /* the loop ends: picks on other loops end the ejection */
    free(r);
}

static const struct task_type upstream_return_type = {
    .name = "return of a server", .run = upstream_run_return, .drop = upstream_drop_return};

/* Without memory for the timer, the next pick ends the ejection. */
static void upstream_expect_return(struct upstream *up, int64_t out_ns)
{
    struct loop *loop = loop_current();
    struct upstream_return *r = upstream_may_have_queue(up) && loop ? malloc(sizeof(*r)) : NULL;

    if (!r)
        return;
    timer_init(&r->timer, &upstream_return_type);
    r->upstream = upstream_hold(up);
    loop_schedule(loop, &r->timer, out_ns);
}

static bool upstream_has_other(const struct upstream *up, const struct upstream_server *server)
{
    const struct server_set *set = membership_now(&up->membership);

    for (unsigned i = 0; i < set->n; i++)
        if (set->servers[i] != server && endpoint_is_used(&set->servers[i]->endpoint) &&
            (endpoint_load(&set->servers[i]->endpoint) & ENDPOINT_UNFIT) == 0)
            return true;
    return false;
}

static void upstream_failed(struct upstream *up, struct upstream_server *server)
{
    int64_t out_ns;

    if (atomic_load(&server->conf)->never_ejected)
        return;
    if (endpoint_load(&server->endpoint) & ENDPOINT_ABSENT)
        return; /* removed: no pick would end its ejection */
    out_ns = ejection_failed(&up->ejection, &server->ejection, &server->endpoint, clock_now_ns(),
                             upstream_has_other(up, server));
    if (out_ns == 0)
        return;
    log_event(LOG_SERVER, LOG_LEVEL_WARNING,
              "upstream %s: server %s: ejected for %g s: connections failed in a row: %u", up->name,
              server->name, (double)out_ns / NS_PER_S,
              atomic_load_explicit(&server->ejection.ejected_after, memory_order_relaxed));
    upstream_expect_return(up, out_ns);
}

void upstream_connected(struct upstream *up, struct upstream_server *server)
{
    if (!up->conf->ejection.resets)
        ejection_worked(&server->ejection);
}

void upstream_passed(struct upstream *up, struct upstream_server *server)
{
    if (up->conf->ejection.resets || !ejection_some_out(&up->ejection) ||
        !ejection_cancel(&up->ejection, &server->ejection, &server->endpoint))
        return;
    log_event(LOG_SERVER, LOG_LEVEL_NOTICE,
              "upstream %s: server %s: ejection over: a check has passed", up->name, server->name);
    upstream_serve(up);
}

void upstream_leave(struct upstream *up, struct upstream_server *server,
                    enum upstream_outcome outcome)
{
    switch (outcome) {
    case UPSTREAM_WORKED: ejection_worked(&server->ejection); break;
    case UPSTREAM_FAILED: upstream_failed(up, server); break;
    case UPSTREAM_UNKNOWN: break;
    }
    endpoint_leave(&server->endpoint);
    upstream_serve(up);
}

int upstream_set_addresses(struct upstream *up, struct upstream_server *server,
                           const struct address *list, unsigned n)
{
    int rc = endpoint_set_addresses(&server->endpoint, up->workers, list, n);

    if (rc > 0 && up->membership.watch.moved)
        up->membership.watch.moved(up->membership.watch.cookie, server);
    if (rc > 0)
        upstream_serve(up); /* ${server} may be usable for the first time */
    return rc;
}

void upstream_withdraw(struct upstream *up, struct upstream_server *server)
{
    if (endpoint_set_flag(&server->endpoint, ENDPOINT_ABSENT))
        ejection_cancel(&up->ejection, &server->ejection, &server->endpoint);
}
