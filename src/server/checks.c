/* server/checks: see checks.h. */
#include "server/checks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "engine/loop.h"
#include "engine/promise.h"
#include "net/netloop.h"
#include "server/eviction.h"
#include "upstream/checker.h"
#include "upstream/upstream.h"

struct checks_group {
    struct checks *checks;
    struct upstream *upstream;
    struct checker_group *group; /* NULL: not checked, or not yet */
};

struct checks {
    struct checks_conf conf;
    struct netloop *net;
    struct checker *checker;
    struct task open;
    struct promise decided; /* all servers with initial_state = checked had their first check */
    struct checks_group groups[];
};

unsigned checks_at_a_time(struct upstream *const *upstreams, unsigned n, unsigned max)
{
    uint64_t servers = 0;

    for (unsigned i = 0; i < n; i++) {
        const struct upstream_conf *conf = upstreams[i]->conf;

        for (unsigned s = 0; s < conf->n_servers && conf->checks.kind != UPSTREAM_CHECK_OFF; s++)
            if (!conf->servers[s].disabled)
                servers += conf->servers[s].names == UPSTREAM_LITERAL ? 1 : CHECKS_OF_A_NAME;
    }
    max = max > 0 ? max : 1;
    return servers < max ? (unsigned)servers : max;
}

/* ---- control loop ---- */

/* on_down = close: end its sessions. */
static void checks_evict(const struct checks *c, const struct upstream *up,
                         struct upstream_server *server)
{
    struct eviction_conf conf = {.loops = c->conf.loops,
                                 .workers = c->conf.workers,
                                 .server = server,
                                 .rate = up->conf->checks.on_down_rate};
    int rc;

    if (up->conf->checks.on_down != UPSTREAM_DOWN_CLOSE)
        return;
    rc = eviction_begin(&conf);
    if (rc < 0)
        log_error("upstream %s: server %s: is down, but its sessions cannot be reset: %s",
                  up->conf->name, server->name, strerror(-rc));
}

static void checks_changed(void *cookie, struct endpoint *e, bool is_up)
{
    struct checks_group *g = cookie;

    /* Down, too, helps waiting clients: it may enable backups or panic mode. */
    upstream_serve(g->upstream);
    if (!is_up)
        checks_evict(g->checks, g->upstream, upstream_server_of(e));
}

static void checks_passed(void *cookie, struct endpoint *e)
{
    struct checks_group *g = cookie;

    upstream_passed(g->upstream, upstream_server_of(e));
}

static void checks_add(struct checks_group *g, struct upstream_server *server)
{
    struct checker_target_conf conf = {.endpoint = &server->endpoint,
                                       .address = server->conf->check_address,
                                       .port = server->conf->check_port};
    int rc;

    if (server->conf->disabled)
        return;
    rc = checker_add(&server->target, g->group, &conf);
    if (rc < 0)
        (void)endpoint_clear_flag(&server->endpoint, ENDPOINT_DOWN);
    if (rc < 0 && rc != -ESHUTDOWN)
        log_error("upstream %s: server %s: counts as up, cannot be checked: %s",
                  g->upstream->conf->name, server->name, strerror(-rc));
}

static void checks_added(void *cookie, struct upstream_server *server)
{
    struct checks_group *g = cookie;

    if (g->group)
        checks_add(g, server);
}

/* Reset the flags: the server may be added again. */
static void checks_removed(void *cookie, struct upstream_server *server)
{
    (void)cookie;
    if (!server->target)
        return;
    checker_remove(server->target);
    server->target = NULL;
    (void)endpoint_clear_flag(&server->endpoint, ENDPOINT_DOWN);
    (void)endpoint_clear_flag(&server->endpoint, ENDPOINT_WARMING);
}

static void checks_address_changed(void *cookie, struct upstream_server *server)
{
    (void)cookie;
    if (server->target)
        checker_retry_now(server->target);
}

static void checks_decided(void *cookie)
{
    struct checks *c = cookie;

    promise_succeed(&c->decided);
}

/* Without checks its servers count as up. */
static void checks_open_failed(const struct checks_group *g, int error)
{
    const struct server_set *set = membership_now(&g->upstream->membership);

    log_error("upstream %s: servers count as up, they cannot be checked: %s",
              g->upstream->conf->name, strerror(-error));
    for (unsigned i = 0; i < set->n; i++)
        (void)endpoint_clear_flag(&set->servers[i]->endpoint, ENDPOINT_DOWN);
}

static int checks_open_group(struct checks_group *g)
{
    const struct upstream_conf *conf = g->upstream->conf;
    const struct server_set *set = membership_now(&g->upstream->membership);
    struct checker_group_conf group = {.name = conf->name,
                                       .check = conf->checks.check,
                                       .health = conf->checks.health,
                                       .slow_start_ns = conf->slow_start_ns,
                                       .changed = checks_changed,
                                       .passed = checks_passed,
                                       .cookie = g,
                                       .n_late = &g->upstream->late_checks};
    int rc;

    group.check.send_proxy = conf->send_proxy;
    group.check.connect = conf->connect;
    group.check.connect.attempt_delay_ns = 0; /* one attempt at a time, for one descriptor */
    rc = checker_group_open(&g->group, g->checks->checker, &group);
    for (unsigned i = 0; rc == 0 && i < set->n; i++)
        checks_add(g, set->servers[i]);
    return rc;
}

static bool checks_has(const struct checks_group *g)
{
    return g->upstream->conf->checks.kind != UPSTREAM_CHECK_OFF;
}

static void checks_run_open(struct task *t)
{
    struct checks *c = CONTAINER_OF(t, struct checks, open);
    struct checker_load load;

    for (unsigned i = 0; i < c->conf.n_upstreams; i++) {
        int rc = checks_has(&c->groups[i]) ? checks_open_group(&c->groups[i]) : 0;

        if (rc < 0)
            checks_open_failed(&c->groups[i], rc);
    }
    checker_load(c->checker, &load);
    if (load.undecided == 0)
        checks_decided(c);
}

static void checks_drop_open(struct task *t)
{
    promise_cancel(&CONTAINER_OF(t, struct checks, open)->decided);
}

static const struct task_type checks_open_type = {
    .name = "begin health checks", .run = checks_run_open, .drop = checks_drop_open};

/* ---- main ---- */

static void checks_watch(struct checks *c)
{
    for (unsigned i = 0; i < c->conf.n_upstreams; i++) {
        struct checks_group *g = &c->groups[i];

        g->checks = c;
        g->upstream = c->conf.upstreams[i];
        if (checks_has(g))
            g->upstream->membership.watch =
                (struct membership_watch){.came = checks_added,
                                          .went = checks_removed,
                                          .moved = checks_address_changed,
                                          .cookie = g};
    }
}

int checks_create(struct checks **out, const struct checks_conf *conf)
{
    struct checker_conf checker = {
        .max_under_way = conf->max_under_way, .seed = hash_seed(), .decided = checks_decided};
    struct checks *c = calloc(1, sizeof(*c) + conf->n_upstreams * sizeof(c->groups[0]));
    int rc;

    if (!c)
        return -ENOMEM;
    c->conf = *conf;
    checker.cookie = c;
    promise_init(&c->decided, NULL);
    c->open.type = &checks_open_type;
    checks_watch(c);
    rc = netloop_create(&c->net, conf->control);
    if (rc == 0)
        rc = checker_create(&c->checker, c->net, &checker);
    if (rc < 0) {
        checks_destroy(c);
        return rc;
    }
    *out = c;
    return 0;
}

int checks_start(struct checks *c, int64_t wait_ns)
{
    int rc = loop_submit(c->conf.control, LOOP_CONTROL, &c->open);

    if (rc < 0)
        return rc;
    if (promise_await(&c->decided, wait_ns) < 0 && promise_cancel(&c->decided))
        log_warning(
            "health checks: servers with initial_state = checked have no result yet; not used "
            "until their first check passes");
    return 0;
}

void checks_destroy(struct checks *c)
{
    if (!c)
        return;
    checker_destroy(c->checker);
    netloop_destroy(c->net);
    promise_close(&c->decided);
    free(c);
}
