/* server/server_reload: the steps of a change of the configuration, see server/server_change.c. */
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
#include "server/upstreams.h"
#include "spare/spare_pools.h"
#include "spare/spares.h"

static const struct server_conf *server_change_conf(const struct server_change *change)
{
    return change->reload.conf;
}

static int server_prepare_certificates(struct server_change *change)
{
    const struct server_conf *conf = server_change_conf(change);

    return certificates_prepare(server_of_change(change)->certificates, conf->tls, conf->n_tls,
                                &change->certificates);
}

static void server_commit_certificates(struct server_change *change)
{
    certificates_commit(change->certificates);
}

static void server_cancel_certificates(struct server_change *change)
{
    certificates_cancel(change->certificates);
}

static int server_prepare_upstreams(struct server_change *change)
{
    int rc = upstreams_prepare(server_of_change(change)->upstreams, server_change_conf(change),
                               &change->upstreams);

    if (rc == 0 && change->phase == SERVER_EDITS)
        upstreams_keep_unchanged(change->upstreams);
    return rc;
}

static void server_commit_upstreams(struct server_change *change)
{
    upstreams_commit(change->upstreams);
}

static void server_cancel_upstreams(struct server_change *change)
{
    upstreams_cancel(change->upstreams);
}

static int server_prepare_descriptors(struct server_change *change)
{
    struct server *sv = server_of_change(change);
    unsigned n, threads = server_change_conf(change)->executor.lookup_threads, names;
    const struct upstream_next *next = upstreams_next(change->upstreams, &n);
    int rc;

    names = resolver_names(next, n);
    change->aside = (struct descriptors_aside){
        .lookups = names < threads ? names : threads,
        .checks = checks_at_a_time(next, n, descriptors_checks_max()),
        .workers = sv->aside.workers, /* server/resize sets aside what new workers need */
        .others = server_change_conf(change)->set_aside};
    if (change->phase == SERVER_CREATES)
        change->aside.workers = loop_group_size(sv->threads.workers);
    rc = descriptors_prepare(&sv->descriptors, &sv->aside, &change->aside);
    if (rc < 0)
        log_error("reload: too few descriptors are left for lookups, health checks and admin "
                  "connections: raise the limit of open files (LimitNOFILE= of the unit, ulimit "
                  "-n), and restart");
    return rc;
}

static void server_commit_descriptors(struct server_change *change)
{
    struct server *sv = server_of_change(change);

    descriptors_commit(&sv->descriptors, &sv->aside, &change->aside);
    sv->aside = change->aside;
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

static void server_commit_checks(struct server_change *change)
{
    checks_commit(change->checks);
}

static void server_cancel_checks(struct server_change *change)
{
    checks_cancel(change->checks);
}

static int server_prepare_names(struct server_change *change)
{
    struct server *sv = server_of_change(change);
    struct resolver_next next = {.is_first = change->phase == SERVER_STARTS,
                                 .wait_ns = SERVER_WAIT_NS,
                                 .ready = server_change_names_ready,
                                 .cookie = change};
    const struct server_conf *conf = server_change_conf(change);
    const struct proxy_loop_conf loops = {.listeners = conf->listeners,
                                          .n_listeners = conf->n_listeners,
                                          .upstreams = conf->upstreams,
                                          .n_upstreams = conf->n_upstreams};
    int rc = proxy_loop_create(&change->proxy_loop, &loops, sv->proxy_loop);

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

static void server_commit_names(struct server_change *change)
{
    struct server *sv = server_of_change(change);

    resolver_commit(change->names);
    proxy_loop_release(sv->proxy_loop);
    sv->proxy_loop = change->proxy_loop;
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

/*
 * Build the server sets. Servers that are down until their first checks are checked before the
 * commit: meanwhile the old ones serve. From here on servers are changed by this reload only.
 */
static int server_prepare_servers(struct server_change *change)
{
    int64_t max_ns = change->phase == SERVER_STARTS ? SERVER_WAIT_NS : CLOCK_NEVER;
    int rc = upstreams_complete(change->upstreams, server_change_places, change->names);

    if (rc == 0 && change->phase == SERVER_EDITS)
        return 0; /* new servers are checked after the commit */
    if (rc == 0)
        rc = upstreams_each_new(change->upstreams, server_try, change);
    if (rc < 0) {
        checks_end_trials(change->checks);
        return rc;
    }
    return checks_wait(change->checks, max_ns, server_change_checks_ready, change) ? -EINPROGRESS
                                                                                   : 0;
}

/* server_commit_upstreams() uses the sets, server_cancel_upstreams() frees them. */
static void server_cancel_servers(struct server_change *change)
{
    checks_end_trials(change->checks);
}

/* In a reload this step, all later ones and the commit run in one task. */
static int server_prepare_spares(struct server_change *change)
{
    struct server *sv = server_of_change(change);
    struct spares_conf conf = {.listeners = server_change_conf(change)->listeners,
                               .n_listeners = server_change_conf(change)->n_listeners};

    conf.upstreams = upstreams_next(change->upstreams, &conf.n_upstreams);
    return spares_choose(sv->spares, &conf, &change->spares);
}

static void server_commit_spares(struct server_change *change)
{
    const struct server *sv = server_of_change(change);

    spare_pools_commit(change->spares);
    if (sv->started)
        spares_refill(sv->spares);
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
    const struct listeners_sources sources = {
        .list = conf->listeners,
        .n = conf->n_listeners,
        .accept_batch = conf->boss.accept_batch,
        .acceptors = conf->boss.threads > 0 ? 0 : server_loops_workers(change),
        .upstream = server_change_upstream,
        .access_log = server_change_access_log,
        .cookie = change,
        .leave_ns = change->reload.drain_timeout_ns,
        .why = change->reload.why};

    return listeners_prepare(server_of_change(change)->listeners, &sources, &change->listeners);
}

static void server_commit_listeners(struct server_change *change)
{
    const struct server_conf *conf = server_change_conf(change);
    struct server *sv = server_of_change(change);

    sv->conf = conf;
    connection_limit_set(&sv->connection_limit, NULL, &conf->quota);
    listeners_commit(change->listeners);
}

static void server_cancel_listeners(struct server_change *change)
{
    listeners_cancel(change->listeners);
}

/* At the start there are pauses if another process handed them over. */
static void server_commit_pauses(struct server_change *change)
{
    if (change->phase == SERVER_STARTS)
        server_pause_start(server_of_change(change));
    else
        server_pause_end_removed(server_of_change(change), server_change_conf(change));
}

/*
 * Certificates come before upstreams, upstreams before what looks at their servers, and pauses,
 * which may end, before listeners. In a reload sockets are bound last: clients of a new one wait
 * for the commit. At the start they are bound first, as that may need privileges.
 */
const struct server_step server_steps[SERVER_STEPS] = {
    {SERVER_RESIZES, server_loops_prepare, server_loops_commit, server_loops_cancel},
    {SERVER_STARTS, server_prepare_certificates, server_commit_certificates,
     server_cancel_certificates},
    {SERVER_CREATES | SERVER_STARTS | SERVER_EDITS, server_prepare_upstreams,
     server_commit_upstreams, server_cancel_upstreams},
    {SERVER_EDITS, server_edits_prepare, NULL, server_edits_cancel},
    {SERVER_CREATES | SERVER_EDITS, server_prepare_descriptors, server_commit_descriptors,
     server_cancel_descriptors},
    {SERVER_STARTS | SERVER_EDITS, server_prepare_checks, server_commit_checks,
     server_cancel_checks},
    {SERVER_STARTS | SERVER_EDITS, server_prepare_names, server_commit_names, server_cancel_names},
    {SERVER_STARTS | SERVER_EDITS, server_prepare_servers, NULL, server_cancel_servers},
    {SERVER_STARTS | SERVER_EDITS, server_prepare_spares, server_commit_spares,
     server_cancel_spares},
    {SERVER_STARTS, NULL, server_commit_pauses, NULL},
    {SERVER_CREATES, server_prepare_listeners, server_commit_listeners, server_cancel_listeners},
    {SERVER_EDITS, NULL, server_edits_commit, NULL},
    {SERVER_RESIZES, server_loops_prepare_sockets, server_loops_commit_sockets,
     server_loops_cancel_sockets},
};
