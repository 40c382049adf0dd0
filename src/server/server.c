/* server/server: see server.h. */
#include "server/server.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "engine/loop_group.h"
#include "limits/connection_limit.h"
#include "net/acceptor.h"
#include "net/descriptor_budget.h"
#include "net/resolve.h"
#include "net/srv.h"
#include "server/checks.h"
#include "server/overload.h"
#include "server/proxy_loop.h"
#include "server/resize.h"
#include "server/spares.h"
#include "server/threads.h"
#include "server/worker.h"
#include "server/worker_assign.h"
#include "server/workers.h"
#include "service/session.h"
#include "upstream/checker.h"
#include "upstream/resolver.h"

/* Wait at start for all host names, and again for the first checks. */
#define SERVER_START_WAIT_NS   (3 * NS_PER_S)
#define SERVER_LOOKUP_RETRY_NS (10 * NS_PER_S) /* maximum pause, for an unknown name */

/* Time for all hosts of one SRV service; the rest come first the next time. */
#define SERVER_LOOKUP_SERVICE_NS (5 * NS_PER_S)

/*
 * note: descriptors. A client is accepted only if its session's descriptors are available: at the
 * limit clients wait in the kernel's queue instead of being reset. Set aside: those open at listen
 * time, some for a log file, lookups and checks, a pipe per worker. Other pipes and spare
 * connections borrow (note: lent in net/descriptor_budget.h).
 */
#define SERVER_SPARE_DESCRIPTORS  4
#define SERVER_LOOKUP_DESCRIPTORS 3

/* One in so many descriptors is never lent. */
#define SERVER_RESERVE_PART 16

struct server {
    const struct server_conf *conf;
    struct server_events events;
    struct threads threads;
    struct workers *workers;
    struct upstream **upstreams;
    struct resolver *resolver;
    struct checks *checks;
    struct spares *spares;
    struct listener **listeners;
    bool started;
    atomic_bool draining;
    atomic_uint sessions;
    struct connection_limit room;
    struct overload *overload;            /* NULL: no limit */
    struct descriptor_budget descriptors; /* see note: descriptors */
    struct log_limit refused_limit;
    /*
     * note: holds. Open sessions and listen sockets, and the server until server_drain(); at 0 it
     * is drained. Acquire and release: the last, which calls drained(), sees others' writes.
     */
    atomic_uint holds;
};

/* ---- any loop ---- */

static void server_release(struct server *sv)
{
    if (atomic_fetch_sub_explicit(&sv->holds, 1, memory_order_acq_rel) == 1 && sv->events.drained)
        sv->events.drained(sv->events.cookie);
}

static int64_t server_on_admit(void *cookie, unsigned descriptors)
{
    struct server *sv = cookie;

    if (descriptor_budget_wanted_back(&sv->descriptors)) {
        spares_refill(sv->spares);
        workers_give_back_pipes(sv->workers);
    }
    if (descriptor_budget_left(&sv->descriptors, descriptors))
        return worker_assign_wait_ns(sv->threads.workers);
    return descriptor_budget_are_lent(&sv->descriptors) ? WORKER_GIVE_BACK_NS : ACCEPTOR_EXHAUSTED;
}

static void server_on_ended(void *cookie, struct session *s)
{
    struct server *sv = cookie;

    descriptor_budget_release(&sv->descriptors, s->service->ops->descriptors);
    listener_left(s);
    atomic_fetch_sub_explicit(&sv->sessions, 1, memory_order_relaxed);
    server_release(sv);
}

static void server_on_accepted(void *cookie, struct session *s)
{
    struct server *sv = cookie;
    unsigned suppressed;
    int rc;

    atomic_fetch_add_explicit(&sv->sessions, 1, memory_order_relaxed);
    descriptor_budget_count(&sv->descriptors, s->service->ops->descriptors);
    atomic_fetch_add_explicit(&sv->holds, 1, memory_order_relaxed);
    rc = worker_assign(sv->threads.workers, s);
    if (rc == 0)
        return;
    if (log_allowed(&sv->refused_limit, NS_PER_S, &suppressed))
        log_warning("listen %s: client reset: no worker accepts it: %s%s", s->service->listener,
                    strerror(-rc), LOG_SUPPRESSED(suppressed));
    server_on_ended(sv, s);
    session_refuse(s);
}

static void server_on_socket_done(void *cookie)
{
    server_release(cookie);
}

/* ---- main ---- */

static int server_create_overload(struct server *sv)
{
    return overload_create(&sv->overload, &sv->conf->overload, &sv->threads, &sv->room);
}

static int server_create_workers(struct server *sv)
{
    struct worker_env env = {.draining = &sv->draining,
                             .descriptors = &sv->descriptors,
                             .buffered = overload_buffered(sv->overload),
                             .ended = server_on_ended,
                             .cookie = sv};

    return workers_create(&sv->workers, sv->threads.workers, &env);
}

static int server_create_upstreams(struct server *sv)
{
    sv->upstreams = calloc(sv->conf->n_upstreams + 1, sizeof(struct upstream *));
    if (!sv->upstreams)
        return -ENOMEM;
    for (unsigned i = 0; i < sv->conf->n_upstreams; i++) {
        int rc = upstream_create(&sv->upstreams[i], &sv->conf->upstreams[i], sv->threads.workers);

        if (rc < 0)
            return rc;
    }
    return 0;
}

/* On an executor thread; the configuration is immutable. */
static bool server_leads_back(void *cookie, const struct upstream *up, const struct address *a)
{
    const struct server *sv = cookie;

    return proxy_loop_is(sv->conf, up->conf, a);
}

static int server_create_resolver(struct server *sv)
{
    struct resolver_conf conf = {.executor = sv->threads.executor,
                                 .control = threads_control(&sv->threads),
                                 .upstreams = sv->upstreams,
                                 .n_upstreams = sv->conf->n_upstreams,
                                 .retry_ns = SERVER_LOOKUP_RETRY_NS,
                                 .service_ns = SERVER_LOOKUP_SERVICE_NS,
                                 .seed = hash_seed(),
                                 .lookup = resolve_host,
                                 .lookup_service = srv_resolve,
                                 .leads_back = server_leads_back,
                                 .cookie = sv};

    return resolver_create(&sv->resolver, &conf);
}

/* Health checks get one in so many descriptors at most. */
#define SERVER_CHECKS_PART 16

static unsigned server_checks_at_a_time(const struct server *sv)
{
    unsigned max = descriptor_budget_limit() / SERVER_CHECKS_PART;

    return checks_at_a_time(sv->upstreams, sv->conf->n_upstreams,
                            max < CHECKER_UNDER_WAY ? max : CHECKER_UNDER_WAY);
}

static int server_create_checks(struct server *sv)
{
    struct checks_conf conf = {.control = threads_control(&sv->threads),
                               .upstreams = sv->upstreams,
                               .n_upstreams = sv->conf->n_upstreams,
                               .max_under_way = server_checks_at_a_time(sv),
                               .loops = sv->threads.workers,
                               .workers = workers_list(sv->workers)};

    if (conf.max_under_way == 0)
        return 0;
    return checks_create(&sv->checks, &conf);
}

static struct upstream *server_find_upstream(const struct server *sv, const char *name)
{
    int i = name ? server_conf_find_upstream(sv->conf, name) : -1;

    return i < 0 ? NULL : sv->upstreams[i];
}

/* Concurrent lookups. */
static unsigned server_lookups(const struct server *sv)
{
    unsigned names = resolver_names(sv->resolver), threads = sv->conf->executor.threads;

    return names < threads ? names : threads;
}

static void server_limit_descriptors(struct server *sv)
{
    unsigned aside = descriptor_budget_open() + SERVER_SPARE_DESCRIPTORS +
                     SERVER_LOOKUP_DESCRIPTORS * server_lookups(sv) + server_checks_at_a_time(sv) +
                     2 * loop_group_size(sv->threads.workers);

    sv->descriptors.max = descriptor_budget_limit();
    sv->descriptors.max = sv->descriptors.max > aside ? sv->descriptors.max - aside : 0;
    sv->descriptors.reserve = sv->descriptors.max / SERVER_RESERVE_PART;
    if (sv->descriptors.max < 2)
        log_warning(
            "no descriptors are left for clients: raise the limit of open files (ulimit -n)");
}

static int server_create_listeners(struct server *sv)
{
    unsigned sockets = 0;

    sv->listeners = calloc(sv->conf->n_listeners + 1, sizeof(struct listener *));
    if (!sv->listeners)
        return -ENOMEM;
    for (unsigned i = 0; i < sv->conf->n_listeners; i++) {
        const struct listener_conf *conf = &sv->conf->listeners[i];
        struct listener_env env = {.boss = sv->threads.boss,
                                   .accept_batch = sv->conf->boss.accept_batch,
                                   .upstream = server_find_upstream(sv, conf->upstream),
                                   .mirror = server_find_upstream(sv, conf->mirror),
                                   .executor = sv->threads.executor,
                                   .room = &sv->room,
                                   .admit = server_on_admit,
                                   .accepted = server_on_accepted,
                                   .stopped = server_on_socket_done,
                                   .cookie = sv};
        int rc;

        if (sv->events.access_log && conf->access_log.where)
            env.access_log =
                sv->events.access_log(sv->events.access_cookie, conf->access_log.where);
        MUST(conf->service == LISTENER_ECHO || env.upstream);
        rc = listener_create(&sv->listeners[i], conf, &env);
        if (rc < 0)
            return rc;
        sockets += listener_sockets(sv->listeners[i]);
    }
    if (loop_group_size(sv->threads.boss) > sockets)
        log_warning(
            "boss: %u threads, but %u listen sockets: the other threads stay idle (see reuseport)",
            loop_group_size(sv->threads.boss), sockets);
    atomic_fetch_add(&sv->holds, sockets);
    server_limit_descriptors(sv);
    return 0;
}

int server_create(struct server **out, const struct server_conf *conf,
                  const struct server_events *events)
{
    struct server *sv = calloc(1, sizeof(*sv));
    int rc;

    if (!sv)
        return -ENOMEM;
    sv->conf = conf;
    sv->events = *events;
    atomic_init(&sv->holds, 1); /* see note: holds */
    connection_limit_init(&sv->room, &conf->quota);
    rc = threads_create(&sv->threads, conf);
    if (rc == 0)
        rc = server_create_overload(sv);
    if (rc == 0)
        rc = server_create_workers(sv);
    if (rc == 0)
        rc = server_create_upstreams(sv);
    if (rc == 0)
        rc = server_create_resolver(sv);
    if (rc == 0)
        rc = server_create_checks(sv);
    if (rc == 0)
        rc = spares_create(&sv->spares, conf, sv->upstreams, sv->threads.workers,
                           workers_list(sv->workers));
    if (rc == 0)
        rc = server_create_listeners(sv);
    if (rc < 0) {
        if (rc == -ENOMEM)
            log_error("out of memory");
        server_destroy(sv);
        return rc;
    }
    *out = sv;
    return 0;
}

int server_start(struct server *sv)
{
    int rc = resolver_start(sv->resolver, SERVER_START_WAIT_NS);

    if (rc < 0)
        return rc;
    sv->started = true;
    rc = sv->checks ? checks_start(sv->checks, SERVER_START_WAIT_NS) : 0;
    if (rc < 0) {
        log_error("cannot start the control thread: %s", strerror(-rc));
        return rc;
    }
    rc = overload_start(sv->overload);
    if (rc < 0)
        return rc;
    spares_refill(sv->spares);
    for (unsigned i = 0; i < sv->conf->n_listeners; i++) {
        rc = listener_start(sv->listeners[i]);
        if (rc < 0) {
            log_error("cannot start a boss thread: %s", strerror(-rc));
            return rc;
        }
    }
    return 0;
}

int server_prepare_threads(struct server *sv, unsigned boss, unsigned workers,
                           struct resize *change)
{
    *change = (struct resize){.threads = &sv->threads,
                              .workers = sv->workers,
                              .spares = sv->spares,
                              .descriptors = &sv->descriptors};
    return resize_prepare(change, boss, workers);
}

void server_drain(struct server *sv)
{
    if (atomic_exchange(&sv->draining, true))
        return;
    for (unsigned i = 0; i < sv->conf->n_listeners; i++)
        listener_stop(sv->listeners[i]);
    workers_drain(sv->workers);
    server_release(sv);
}

/*
 * Bosses first, so that workers get no new sessions, the executor last. A hanging group does not
 * stop the others.
 */
int server_stop(struct server *sv, unsigned *cut)
{
    int boss, workers, control, executor;

    if (sv->started)
        server_drain(sv); /* the listeners close on their own loops */
    boss = threads_end_boss(&sv->threads);
    *cut = server_sessions(sv);
    workers = threads_end_workers(&sv->threads);
    control = threads_end_control(&sv->threads);
    executor = threads_end_executor(&sv->threads);
    if (boss < 0 || workers < 0 || control < 0)
        return -ETIMEDOUT;
    MUST(server_sessions(sv) == 0);
    return executor < 0 ? -EBUSY : 0;
}

bool server_watch(struct server *sv)
{
    return threads_watch(&sv->threads);
}

int64_t server_watch_interval_ns(const struct server *sv)
{
    return threads_watch_interval_ns(&sv->threads);
}

void server_log_stats(struct server *sv)
{
    threads_log_stats(&sv->threads);
    overload_log_stats(sv->overload);
    for (unsigned i = 0; i < sv->conf->n_listeners; i++)
        listener_log_stats(sv->listeners[i]);
    for (unsigned i = 0; i < sv->conf->n_upstreams; i++)
        upstream_log_stats(sv->upstreams[i]);
}

unsigned server_sessions(const struct server *sv)
{
    return atomic_load_explicit(&sv->sessions, memory_order_relaxed);
}

/* End loops that never had a thread, while their workers exist. */
static void server_end_loops(struct server *sv)
{
    if (sv->threads.boss)
        loop_group_stop(sv->threads.boss, 0, 0);
    if (sv->threads.workers)
        loop_group_stop(sv->threads.workers, 0, 0);
    if (sv->threads.control)
        loop_group_stop(sv->threads.control, 0, 0);
}

void server_destroy(struct server *sv)
{
    if (!sv)
        return;
    server_end_loops(sv);
    for (unsigned i = 0; sv->listeners && i < sv->conf->n_listeners; i++)
        listener_destroy(sv->listeners[i]);
    workers_destroy(sv->workers);
    spares_destroy(sv->spares);
    checks_destroy(sv->checks);
    resolver_destroy(sv->resolver);
    for (unsigned i = 0; sv->upstreams && i < sv->conf->n_upstreams; i++)
        upstream_destroy(sv->upstreams[i]);
    threads_destroy(&sv->threads);
    overload_destroy(sv->overload); /* after the loops, which count in it */
    free(sv->listeners);
    free(sv->upstreams);
    free(sv);
}
