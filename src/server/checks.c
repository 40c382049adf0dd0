#include "server/checks_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "net/netloop.h"
#include "sessions/eviction.h"
#include "upstream/upstream.h"

static bool checks_has(const struct upstream_conf *conf)
{
    return conf->checks.kind != UPSTREAM_CHECK_OFF;
}

/* Checks at a time of a line, also if it is disabled, and as many questions to agents. */
static unsigned checks_of_line(const struct upstream_conf *conf,
                               const struct upstream_server_conf *line)
{
    unsigned each = line->names == UPSTREAM_LITERAL ? 1 : line->disabled ? 0 : CHECKS_OF_A_NAME;

    return each *
           ((unsigned)upstream_is_checked(conf, line) + (unsigned)upstream_has_agent(conf, line));
}

unsigned checks_at_a_time(const struct upstream_next *list, unsigned n, unsigned max)
{
    uint64_t servers = 0;

    for (unsigned i = 0; i < n; i++) {
        const struct upstream_conf *conf = list[i].conf;

        for (unsigned s = 0; s < conf->n_servers; s++)
            servers += checks_of_line(conf, &conf->servers[s]);
    }
    max = max > 0 ? max : 1;
    return servers < max ? (unsigned)servers : max;
}

/* ---- control loop ---- */

static void checks_evict(const struct checks *c, const struct upstream *up,
                         struct upstream_server *server, bool of_backup)
{
    struct eviction_conf conf = {.loops = c->conf.loops,
                                 .workers = c->conf.workers,
                                 .upstream = up->name,
                                 .server = server,
                                 .of_backup = of_backup,
                                 .rate = up->conf->checks.on_down_rate};
    int rc = eviction_begin(&conf);

    if (rc < 0)
        log_error("upstream %s: server %s: %s: its sessions cannot be reset: %s", up->name,
                  server->name, of_backup ? "not in use any more" : "down", strerror(-rc));
}

/* End the sessions of backups if other servers are in use again. */
static void checks_look_for_backups(const struct checks_group *g)
{
    const struct server_set *set = membership_now(&g->upstream->membership);

    if (!upstream_backups_are_over(g->upstream) ||
        g->upstream->conf->checks.on_up != UPSTREAM_UP_CLOSE)
        return;
    for (unsigned i = 0; i < set->n; i++)
        if (atomic_load(&set->servers[i]->is_backup))
            checks_evict(g->checks, g->upstream, set->servers[i], true);
}

void checks_changed(void *cookie, struct endpoint *e, bool is_up)
{
    struct checks_group *g = cookie;

    /* Serve waiting clients also when a server goes down: by backups or panic mode. */
    upstream_serve(g->upstream);
    if (!is_up && g->upstream->conf->checks.on_down == UPSTREAM_DOWN_CLOSE)
        checks_evict(g->checks, g->upstream, upstream_server_of(e), false);
    checks_look_for_backups(g);
}

/* An ejection may have ended meanwhile, on a worker. */
static void checks_passed(void *cookie, struct endpoint *e, bool as_sessions)
{
    struct checks_group *g = cookie;

    if (as_sessions)
        upstream_passed(g->upstream, upstream_server_of(e));
    checks_look_for_backups(g);
}

static void checks_add(struct checks_group *g, struct upstream_server *server,
                       const struct checker_target_conf *conf)
{
    int rc = checker_add(server->target, g->group, conf);

    if (rc < 0)
        (void)endpoint_clear_flag(&server->endpoint, ENDPOINT_DOWN);
}

/* Stop checking ${server}, which then counts as up. It may be added again. */
static void checks_remove(struct upstream_server *server)
{
    if (!checker_has(server->target))
        return;
    checker_remove(server->target);
    (void)endpoint_clear_flag(&server->endpoint, ENDPOINT_DOWN);
    (void)endpoint_clear_flag(&server->endpoint, ENDPOINT_WARMING);
    atomic_store_explicit(&server->endpoint.is_checked, false, memory_order_relaxed);
}

struct checker_target_conf checks_target(struct upstream_server *server,
                                         const struct upstream_server_conf *line)
{
    return (struct checker_target_conf){.endpoint = &server->endpoint,
                                        .address = line->check_address,
                                        .port = line->check_port,
                                        .interval_ns = line->check_interval_ns,
                                        .rise = line->rise,
                                        .fall = line->fall,
                                        .has_send_proxy = line->has_send_proxy,
                                        .send_proxy = line->send_proxy};
}

static void checks_look(struct checks_group *g, struct upstream_server *server)
{
    const struct upstream_server_conf *line = server->conf;
    struct checker_target_conf conf = checks_target(server, line);

    checks_agent_look(g, server);
    if (!g->has_checks || line->unchecked || atomic_load(&server->is_disabled))
        checks_remove(server);
    else if (checker_has(server->target))
        checker_use(server->target, &conf);
    else
        checks_add(g, server, &conf);
}

/* ${server} is new, or its server line has changed. */
static void checks_came(void *cookie, struct upstream_server *server)
{
    checks_look(cookie, server);
    checks_look_for_backups(cookie);
}

static void checks_went(void *cookie, struct upstream_server *server)
{
    (void)cookie;
    checks_remove(server);
    checks_agent_remove(server);
}

static void checks_moved(void *cookie, struct upstream_server *server)
{
    (void)cookie;
    if (checker_has(server->target))
        checker_retry_now(server->target);
    if (checker_has(server->agent))
        checker_retry_now(server->agent);
}

static int checks_open(struct checks *c)
{
    int rc = 0;

    if (!c->net)
        rc = netloop_create(&c->net, c->conf.control);
    if (rc == 0 && !c->checker)
        rc = checker_create(&c->checker, c->net, hash_seed());
    return rc;
}

static struct checks_group *checks_find(const struct checks *c, const struct upstream *up)
{
    list_for_each (node, &c->groups) {
        struct checks_group *g = LIST_ENTRY(node, struct checks_group, link);

        if (g->upstream == up)
            return g;
    }
    return NULL;
}

static int checks_create_group(struct checks_group **out, struct checks *c, struct upstream *up)
{
    struct checks_group *g = calloc(1, sizeof(*g));
    struct checker_group_conf conf = {.name = up->name,
                                      .changed = checks_changed,
                                      .passed = checks_passed,
                                      .cookie = g,
                                      .n_late = &up->late_checks};
    int rc;

    if (!g)
        return -ENOMEM;
    list_init(&g->link);
    g->checks = c;
    g->upstream = up;
    rc = checker_group_create(&g->group, c->checker, &conf);
    if (rc == 0) {
        conf = (struct checker_group_conf){
            .name = up->name, .answered = checks_agent_answered, .cookie = g};
        rc = checker_group_create(&g->agents, c->checker, &conf);
    }
    if (rc < 0) {
        if (g->group)
            checker_group_close(g->group);
        free(g);
        return rc;
    }
    *out = g;
    return 0;
}

/* TLS of checks is that of sessions, unless check_tls names another or none. */
static struct upstream_tls_conf checks_tls(const struct upstream_conf *conf)
{
    struct upstream_tls_conf tls = conf->checks.check.tls;
    const char *server_name = tls.server_name ? tls.server_name : conf->tls.server_name;

    if (!tls.name)
        tls = conf->tls;
    tls.server_name = server_name;
    return tls;
}

static int checks_create_rules(struct checker_rules **out, const struct upstream *up,
                               const struct upstream_conf *conf)
{
    struct checker_rules_conf rules = {.memory = conf->memory,
                                       .check = conf->checks.check,
                                       .header = conf->checks.header,
                                       .health = conf->checks.health,
                                       .slow_start_ns = conf->slow_start_ns};

    rules.check.send_proxy = conf->send_proxy;
    rules.check.connect = conf->connect;
    rules.check.tls = checks_tls(conf);
    rules.check.handshakes = up->handshakes;
    if (conf->checks.kind != UPSTREAM_CHECK_HTTP)
        rules.check.http.method = NULL;
    if (conf->checks.kind < UPSTREAM_CHECK_STEPS)
        rules.check.n_steps = 0;
    rules.check.connect.attempt_delay_ns = 0; /* one attempt, one descriptor at a time */
    return checker_rules_create(out, &rules);
}

static int checks_prepare_step(struct checks *c, struct checks_step *step,
                               const struct upstream_next *next)
{
    int rc;

    step->upstream = next->upstream;
    if (!checks_has(next->conf) && !checks_agent_wanted(next->conf))
        return 0;
    rc = checks_open(c);
    if (rc < 0)
        return rc;
    step->group = checks_find(c, next->upstream);
    if (!step->group)
        rc = checks_create_group(&step->group, c, next->upstream);
    if (rc < 0)
        return rc;
    if (checks_has(next->conf))
        rc = checks_create_rules(&step->rules, next->upstream, next->conf);
    if (rc == 0 && checks_agent_wanted(next->conf))
        rc = checks_agent_rules(&step->agent_rules, next->conf);
    if (rc < 0 && rc != -ENOMEM)
        log_error("upstream %s: servers cannot be checked: %s", next->upstream->name,
                  strerror(-rc));
    return rc;
}

int checks_prepare(struct checks *c, const struct upstream_next *list, unsigned n,
                   unsigned at_a_time, struct checks_change **out)
{
    struct checks_change *change = calloc(1, sizeof(*change) + n * sizeof(change->steps[0]));
    int rc = 0;

    MUST(loop_is_current(c->conf.control));
    if (!change)
        return -ENOMEM;
    change->checks = c;
    change->at_a_time = at_a_time;
    timer_init(&change->tried, &checks_tried_type);
    change->n = n;
    for (unsigned i = 0; rc == 0 && i < n; i++)
        rc = checks_prepare_step(c, &change->steps[i], &list[i]);
    if (rc == 0 && c->checker)
        rc = checker_reserve(c->checker, at_a_time);
    if (rc < 0) {
        checks_cancel(change);
        return rc;
    }
    *out = change;
    return 0;
}

static bool checks_is_new(const struct checks_group *g)
{
    return list_empty(&g->link);
}

static void checks_free_group(struct checks_group *g)
{
    checker_group_close(g->group);
    checker_group_close(g->agents);
    free(g);
}

void checks_cancel(struct checks_change *change)
{
    checks_end_trials(change);
    for (unsigned i = 0; i < change->n; i++) {
        struct checks_step *step = &change->steps[i];

        checker_rules_release(step->rules);
        checker_rules_release(step->agent_rules);
        if (!step->group || !checks_is_new(step->group))
            continue;
        checks_free_group(step->group);
    }
    free(change);
}

static void checks_use(const struct checks_step *step)
{
    struct checks_group *g = step->group;
    struct membership *m = &g->upstream->membership;
    const struct server_set *set = membership_now(m);

    if (checks_is_new(g))
        list_append(&g->checks->groups, &g->link);
    g->is_kept = true;
    g->has_checks = step->rules != NULL;
    g->has_agents = step->agent_rules != NULL;
    if (step->rules)
        checker_group_use(g->group, step->rules);
    if (step->agent_rules)
        checker_group_use(g->agents, step->agent_rules);
    if (step->trial) {
        checker_group_take(g->group, step->trial);
        checker_group_close(step->trial);
    }
    m->watch = (struct membership_watch){.came = checks_came,
                                         .went = checks_went,
                                         .moved = checks_moved,
                                         .changed = checks_came,
                                         .cookie = g};
    for (unsigned i = 0; i < set->n; i++)
        checks_look(g, set->servers[i]);
}

static void checks_free_upstream(struct upstream *up)
{
    const struct server_set *set = membership_now(&up->membership);

    for (unsigned i = 0; i < set->n; i++) {
        checks_remove(set->servers[i]);
        checks_agent_remove(set->servers[i]);
    }
    upstream_serve(up);
}

/* Remove ${g}. The servers of a removed upstream keep their flags, for the last sessions. */
static void checks_close(struct checks_group *g)
{
    g->upstream->membership.watch = (struct membership_watch){0};
    list_remove(&g->link);
    checks_free_group(g);
}

void checks_commit(struct checks_change *change)
{
    struct checks *c = change->checks;

    MUST(loop_is_current(c->conf.control));
    for (unsigned i = 0; i < change->n; i++) {
        struct checks_step *step = &change->steps[i];

        if (step->group)
            checks_use(step);
        else
            checks_free_upstream(step->upstream);
    }
    list_for_each_safe (node, &c->groups) {
        struct checks_group *g = LIST_ENTRY(node, struct checks_group, link);

        if (!g->is_kept)
            checks_close(g);
        else
            g->is_kept = false;
    }
    c->at_a_time = change->at_a_time;
    if (c->checker)
        checker_set_limit(c->checker, c->at_a_time);
    free(change);
}

int checks_create(struct checks **out, const struct checks_conf *conf)
{
    struct checks *c = calloc(1, sizeof(*c));

    if (!c)
        return -ENOMEM;
    c->conf = *conf;
    list_init(&c->groups);
    *out = c;
    return 0;
}

void checks_destroy(struct checks *c)
{
    if (!c)
        return;
    checker_destroy(c->checker);
    netloop_destroy(c->net);
    list_for_each_safe (node, &c->groups)
        free(LIST_ENTRY(node, struct checks_group, link));
    free(c);
}
