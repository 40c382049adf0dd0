/*
 * server/server_reload: changes the configuration of a running server.
 *
 *   prepare each part -> [new names are looked up] -> build the server sets
 *       -> [new servers are checked, if they start down] -> prepare the rest -> commit all
 *                    \-> cancel what was prepared
 *
 * All steps run on the control loop. Only prepare can fail.
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "engine/loop.h"
#include "engine/loop_group.h"
#include "limits/connection_limit.h"
#include "listen/listeners.h"
#include "listen/proxy_loop.h"
#include "names/resolver.h"
#include "server/certificates.h"
#include "server/checks.h"
#include "server/server_internal.h"
#include "server/server_pause.h"
#include "server/spares.h"
#include "server/upstreams.h"
#include "upstream/spare_pools.h"

static struct server *server_of_change(struct server_change *change)
{
    return CONTAINER_OF(change, struct server, change);
}

static const struct server_conf *server_change_conf(const struct server_change *change)
{
    return change->reload.conf;
}

static int server_prepare_loops(struct server_change *change)
{
    const struct server_conf *conf = server_change_conf(change);
    struct server *sv = server_of_change(change);
    unsigned workers = threads_workers(conf);
    int rc = server_prepare_threads(sv, conf->boss.threads, workers, &change->resize);

    if (rc < 0)
        log_error("reload: cannot change to %u boss and %u worker threads: %s", conf->boss.threads,
                  workers, strerror(-rc));
    return rc;
}

static void server_cancel_loops(struct server_change *change)
{
    resize_cancel(&change->resize);
}

static int server_prepare_upstreams(struct server_change *change)
{
    return upstreams_prepare(server_of_change(change)->upstreams, server_change_conf(change),
                             &change->upstreams);
}

static void server_cancel_upstreams(struct server_change *change)
{
    upstreams_cancel(change->upstreams);
}

static int server_prepare_descriptors(struct server_change *change)
{
    struct server *sv = server_of_change(change);
    unsigned n;
    const struct upstream_next *next = upstreams_next(change->upstreams, &n);
    int rc;

    change->aside = server_aside(sv, server_change_conf(change), next);
    change->aside.workers = sv->aside.workers; /* server/resize sets aside what new workers need */
    rc = descriptors_prepare(&sv->descriptors, &sv->aside, &change->aside);
    if (rc < 0)
        log_error("reload: too few descriptors are left for lookups, health checks and admin "
                  "connections: raise the limit of open files (LimitNOFILE= of the unit, ulimit "
                  "-n), and restart");
    return rc;
}

static void server_cancel_descriptors(struct server_change *change)
{
    struct server *sv = server_of_change(change);

    descriptors_cancel(&sv->descriptors, &sv->aside, &change->aside);
}

static int server_prepare_checks(struct server_change *change)
{
    unsigned n;
    const struct upstream_next *next = upstreams_next(change->upstreams, &n);
    unsigned at_a_time = change->aside.checks > 0 ? change->aside.checks : 1;

    return checks_prepare(server_of_change(change)->checks, next, n, at_a_time, &change->checks);
}

static void server_cancel_checks(struct server_change *change)
{
    checks_cancel(change->checks);
}

static int server_prepare_certificates(struct server_change *change)
{
    const struct server_conf *conf = server_change_conf(change);

    return certificates_prepare(server_of_change(change)->certificates, conf->tls, conf->n_tls,
                                &change->certificates);
}

static void server_cancel_certificates(struct server_change *change)
{
    certificates_cancel(change->certificates);
}

static void server_names_ready(void *cookie, int error);

static int server_prepare_names(struct server_change *change)
{
    struct server *sv = server_of_change(change);
    struct resolver_next next = {
        .wait_ns = SERVER_WAIT_NS, .ready = server_names_ready, .cookie = change};
    const struct server_conf *conf = server_change_conf(change);
    int rc =
        proxy_loop_create(&change->proxy_loop, conf->listeners, conf->n_listeners, sv->proxy_loop);

    if (rc < 0)
        return rc;
    next.list = upstreams_next(change->upstreams, &next.n);
    next.listeners = change->proxy_loop;
    rc = resolver_prepare(sv->resolver, &next, &change->names);
    if (rc < 0) {
        proxy_loop_release(change->proxy_loop);
        return rc;
    }
    return -EINPROGRESS;
}

static void server_cancel_names(struct server_change *change)
{
    resolver_cancel(change->names);
    proxy_loop_release(change->proxy_loop);
}

static unsigned server_change_places(const void *cookie, const struct upstream *up,
                                     const struct upstream_server_conf *line,
                                     struct membership_place *places)
{
    return resolver_find_places(cookie, up, line, places);
}

static int server_try(void *cookie, unsigned i, struct upstream_server *server,
                      const struct upstream_server_conf *line)
{
    struct server_change *change = cookie;

    return checks_try(change->checks, i, &server_change_conf(change)->upstreams[i], server, line);
}

static void server_checks_ready(void *cookie);

/*
 * Build the server sets. Servers that are down until their first checks are checked before the
 * commit: meanwhile the old ones serve. From here on servers are changed by this reload only.
 */
static int server_prepare_servers(struct server_change *change)
{
    int rc = upstreams_complete(change->upstreams, server_change_places, change->names);

    if (rc == 0)
        rc = upstreams_each_new(change->upstreams, server_try, change);
    if (rc < 0) {
        checks_end_trials(change->checks);
        return rc;
    }
    return checks_wait(change->checks, server_checks_ready, change) ? -EINPROGRESS : 0;
}

/* server_cancel_upstreams() frees the sets. */
static void server_cancel_servers(struct server_change *change)
{
    checks_end_trials(change->checks);
}

/* This step, all later ones and the commit run in one task. */
static int server_prepare_spares(struct server_change *change)
{
    struct server *sv = server_of_change(change);
    unsigned n;
    const struct upstream_next *next = upstreams_next(change->upstreams, &n);

    return spares_choose(sv->spares, server_change_conf(change), next, &change->spares);
}

static void server_cancel_spares(struct server_change *change)
{
    spare_pools_cancel(change->spares);
}

static struct access_log *server_change_access_log(void *cookie, const char *where)
{
    const struct server_reload *reload = &((const struct server_change *)cookie)->reload;

    return reload->access_log ? reload->access_log(reload->access_cookie, where) : NULL;
}

static struct upstream *server_change_upstream(void *cookie, const char *name)
{
    return upstreams_find(((const struct server_change *)cookie)->upstreams, name);
}

static int server_prepare_listeners(struct server_change *change)
{
    const struct server_conf *conf = server_change_conf(change);
    const struct listeners_sources sources = {.list = conf->listeners,
                                              .n = conf->n_listeners,
                                              .accept_batch = conf->boss.accept_batch,
                                              .upstream = server_change_upstream,
                                              .access_log = server_change_access_log,
                                              .cookie = change,
                                              .leave_ns = change->reload.drain_timeout_ns,
                                              .why = change->reload.why};

    return listeners_prepare(server_of_change(change)->listeners, &sources, &change->listeners);
}

static void server_cancel_listeners(struct server_change *change)
{
    listeners_cancel(change->listeners);
}

/* Parts of a reload: prepared in this order, cancelled in the reverse order. */
static const struct server_step {
    int (*prepare)(struct server_change *change); /* -EINPROGRESS: server_*_ready() follows */
    void (*cancel)(struct server_change *change);
} server_steps[] = {
    {server_prepare_loops, server_cancel_loops},
    {server_prepare_upstreams, server_cancel_upstreams},
    {server_prepare_descriptors, server_cancel_descriptors},
    {server_prepare_checks, server_cancel_checks},
    {server_prepare_certificates, server_cancel_certificates},
    {server_prepare_names, server_cancel_names},
    {server_prepare_servers, server_cancel_servers},
    {server_prepare_spares, server_cancel_spares},
    {server_prepare_listeners, server_cancel_listeners},
};

/* An administrator's io_ratio lasts until the configured value changes. */
static void server_commit_io_ratio(struct server *sv, unsigned io_ratio)
{
    if (sv->admin_io_ratio > 0 && io_ratio == sv->conf->worker.io_ratio)
        return;
    sv->admin_io_ratio = 0;
    MUST(loop_group_set_io_ratio(sv->threads.workers, io_ratio) == 0);
}

/* Commit upstreams before what uses them, such as listeners, and certificates before upstreams. */
static void server_commit_parts(struct server_change *change)
{
    const struct server_conf *conf = server_change_conf(change);
    struct server *sv = server_of_change(change);

    resize_commit(&change->resize);
    server_commit_io_ratio(sv, conf->worker.io_ratio);
    certificates_commit(change->certificates);
    upstreams_commit(change->upstreams);
    spare_pools_commit(change->spares);
    checks_commit(change->checks);
    resolver_commit(change->names);
    proxy_loop_release(sv->proxy_loop);
    sv->proxy_loop = change->proxy_loop;
    descriptors_commit(&sv->descriptors, &sv->aside, &change->aside);
    sv->aside = change->aside;
    sv->conf = conf;
    connection_limit_set(&sv->room, NULL, &conf->quota);
    server_pause_end_removed(sv, conf);
    listeners_commit(change->listeners);
    spares_refill(sv->spares);
}

/* ---- control loop ---- */

static void server_change_end(struct server_change *change, int rc)
{
    struct server_reload reload = change->reload;

    change->waits = false;
    change->under_way = false;
    reload.done(reload.cookie, rc);
}

static void server_change_fail(struct server_change *change, int rc)
{
    while (change->n_prepared > 0)
        server_steps[--change->n_prepared].cancel(change);
    server_change_end(change, rc);
}

static void server_change_commit(struct server_change *change)
{
    server_commit_parts(change);
    server_change_end(change, 0);
}

static void server_change_go_on(struct server_change *change)
{
    while (change->n_prepared < ARRAY_LEN(server_steps)) {
        int rc = atomic_load(&change->given_up) ? -ECANCELED
                                                : server_steps[change->n_prepared].prepare(change);

        if (rc < 0 && rc != -EINPROGRESS) {
            server_change_fail(change, rc);
            return;
        }
        change->n_prepared++;
        change->waits = rc == -EINPROGRESS;
        if (change->waits)
            return;
    }
    server_change_commit(change);
}

static void server_names_ready(void *cookie, int error)
{
    struct server_change *change = cookie;

    change->waits = false;
    if (error < 0)
        server_change_fail(change, error);
    else
        server_change_go_on(change);
}

static void server_checks_ready(void *cookie)
{
    struct server_change *change = cookie;

    change->waits = false;
    server_change_go_on(change);
}

static void server_run_give_up(struct task *t)
{
    struct server_change *change = CONTAINER_OF(t, struct server_change, give_up);

    if (change->waits)
        server_change_fail(change, -ECANCELED);
}

static const struct task_type server_give_up_type = {.name = "give up a reload",
                                                     .run = server_run_give_up};

static void server_run_change(struct task *t)
{
    server_change_go_on(CONTAINER_OF(t, struct server_change, begin));
}

static void server_drop_change(struct task *t)
{
    server_change_end(CONTAINER_OF(t, struct server_change, begin), -ESHUTDOWN);
}

static const struct task_type server_change_type = {
    .name = "reload", .run = server_run_change, .drop = server_drop_change};

int server_reload(struct server *sv, const struct server_reload *reload)
{
    struct server_change *change = &sv->change;
    int rc;

    MUST(!change->under_way);
    memset(change, 0, sizeof(*change));
    change->reload = *reload;
    change->under_way = true;
    change->begin.type = &server_change_type;
    change->give_up.type = &server_give_up_type;
    rc = loop_submit(threads_control(&sv->threads), LOOP_CONTROL, &change->begin);
    if (rc < 0)
        change->under_way = false;
    return rc;
}

void server_reload_give_up(struct server *sv)
{
    struct server_change *change = &sv->change;

    if (!change->under_way || atomic_exchange(&change->given_up, true))
        return;
    if (loop_submit(threads_control(&sv->threads), LOOP_CONTROL, &change->give_up) < 0)
        return; /* the loop ends */
}
