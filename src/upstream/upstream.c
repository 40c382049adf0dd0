#include "upstream/upstream.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "engine/loop.h"
#include "engine/loop_group.h"

/* Longer names are cut. */
#define UPSTREAM_NAME_BYTES 128

static void upstream_changed(struct endpoint_group *g)
{
    spare_group_refresh(&CONTAINER_OF(g, struct upstream, group)->spares);
}

static void upstream_log_unused(const struct upstream_conf *conf)
{
    for (unsigned i = 0; i < conf->n_servers; i++) {
        const struct upstream_server_conf *server = &conf->servers[i];

        if (!upstream_server_is_used(server))
            log_notice("upstream %s: server %s: gets no connections: %s", conf->name, server->id,
                       server->disabled ? "disabled" : "weight=0");
    }
}

int upstream_create(struct upstream **out, const struct upstream_conf *conf,
                    struct loop_group *workers)
{
    struct upstream *up = calloc(1, sizeof(*up));
    int rc;

    if (!up)
        return -ENOMEM;
    up->conf = conf;
    up->workers = workers;
    ejection_group_init(&up->ejection, &conf->ejection, conf->n_servers);
    for (unsigned i = 0; i < conf->n_servers; i++)
        up->bounded |= conf->servers[i].max_connections > 0;
    retry_budget_init(&up->retry_budget, conf->retry_budget);
    wait_queue_init(&up->waiting, conf->queue_length, conf->queue_timeout_ns);
    up->group.changed = upstream_changed;
    rc = spare_group_init(&up->spares, &conf->spare, workers);
    if (rc == 0)
        rc = membership_open(&up->membership, up);
    if (rc < 0) {
        upstream_destroy(up);
        return rc;
    }
    upstream_log_unused(conf);
    *out = up;
    return 0;
}

void upstream_destroy(struct upstream *up)
{
    if (!up)
        return;
    wait_queue_close(&up->waiting);
    membership_close(&up->membership);
    spare_group_close(&up->spares);
    free(up);
}

void upstream_serve(struct upstream *up)
{
    if (up->bounded)
        wait_queue_serve(&up->waiting);
}

/* Return servers whose ejection is over. */
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
            log_notice("upstream %s: server %s: ejection over", up->conf->name, server->name);
    }
    upstream_serve(up);
}

/* Must a new session queue? With a full queue it may try: a place may suit no waiter. */
static bool upstream_has_queue(const struct upstream *up)
{
    unsigned n = up->bounded ? wait_queue_length(&up->waiting) : 0;

    return n > 0 && n < up->conf->queue_length;
}

int upstream_pick(struct upstream *up, struct balancer_pick_state *pick,
                  struct upstream_server **out)
{
    struct endpoint *e;
    int rc;

    if (ejection_some_out(&up->ejection))
        upstream_sweep(up);
    if (upstream_has_queue(up))
        return -EBUSY;
    rc = balancer_pick(membership_now(&up->membership)->balancer, pick, &e);
    if (rc == 0)
        *out = upstream_server_of(e);
    return rc;
}

/* For waiting sessions: without new picks nothing would end the ejection. */
struct upstream_return {
    struct timer timer;
    struct upstream *upstream;
};

static struct upstream_return *upstream_return_of(struct task *t)
{
    return CONTAINER_OF(CONTAINER_OF(t, struct timer, task), struct upstream_return, timer);
}

static void upstream_run_return(struct task *t)
{
    struct upstream_return *r = upstream_return_of(t);

    upstream_sweep(r->upstream);
    free(r);
}

static void upstream_drop_return(struct task *t)
{
    free(upstream_return_of(t)); /* at shutdown: other loops' picks and leaves do it */
}

static const struct task_type upstream_return_type = {
    .name = "return of a server", .run = upstream_run_return, .drop = upstream_drop_return};

/* Without memory the next pick does it. */
static void upstream_expect_return(struct upstream *up, int64_t out_ns)
{
    struct loop *loop = loop_current();
    struct upstream_return *r = up->bounded && loop ? malloc(sizeof(*r)) : NULL;

    if (!r)
        return;
    timer_init(&r->timer, &upstream_return_type);
    r->upstream = up;
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

    if (endpoint_load(&server->endpoint) & ENDPOINT_ABSENT)
        return; /* removed from the set: nothing would return it */
    out_ns = ejection_failed(&up->ejection, &server->ejection, &server->endpoint, clock_now_ns(),
                             upstream_has_other(up, server));
    if (out_ns == 0)
        return;
    log_warning("upstream %s: server %s: ejected for %g s: connections failed in a row: %u",
                up->conf->name, server->name, (double)out_ns / NS_PER_S,
                up->conf->ejection.failures);
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
    log_notice("upstream %s: server %s: ejection over: a check has passed", up->conf->name,
               server->name);
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
        upstream_serve(up); /* it may be usable for the first time */
    return rc;
}

static const char *upstream_state_text(const struct upstream_server *server, uint32_t load)
{
    if (server->conf->disabled)
        return "disabled";
    if (load & ENDPOINT_ABSENT)
        return "absent";
    if (load & ENDPOINT_DOWN)
        return "down";
    if (load & ENDPOINT_EJECTED)
        return "ejected";
    if (!endpoint_is_used(&server->endpoint))
        return "drained";
    return load & ENDPOINT_WARMING ? "warming" : "up";
}

static void upstream_log_server(const struct upstream *up, const struct upstream_server *server)
{
    char name[UPSTREAM_NAME_BYTES + ADDRESS_TEXT_BYTES];
    uint32_t load = endpoint_load(&server->endpoint);

    snprintf(name, sizeof(name), "%s/%s", up->conf->name, server->name);
    log_notice("stats server %s state=%s connections=%u", name, upstream_state_text(server, load),
               load & ENDPOINT_COUNT_MASK);
    counters_log(&server->counters, "server", name);
    counters_log_connects(&server->connects, "server", name);
    spare_log_stats(server->spare, name);
}

void upstream_log_stats(struct upstream *up)
{
    struct server_set *set = membership_take(&up->membership);

    log_notice(
        "stats upstream %s connections=%u waiting=%u servers=%u panic=%s late_checks=%" PRIu64
        " retries=%" PRIu64 " retries_refused=%" PRIu64,
        up->conf->name, atomic_load_explicit(&up->group.load, memory_order_relaxed),
        wait_queue_length(&up->waiting), set->n, balancer_panics(set->balancer) ? "yes" : "no",
        atomic_load_explicit(&up->late_checks, memory_order_relaxed),
        atomic_load_explicit(&up->retry_budget.retries, memory_order_relaxed),
        atomic_load_explicit(&up->retry_budget.refused, memory_order_relaxed));
    counters_log(&up->counters, "upstream", up->conf->name);
    for (unsigned i = 0; i < set->n; i++)
        upstream_log_server(up, set->servers[i]);
    membership_give_back(set);
}
