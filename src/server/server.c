#include "server/server_internal.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "engine/executor.h"
#include "engine/loop_group.h"
#include "engine/promise.h"
#include "limits/connection_limit.h"
#include "listen/listeners.h"
#include "listen/proxy_loop.h"
#include "names/resolver.h"
#include "net/acceptor.h"
#include "net/descriptor_budget.h"
#include "net/resolve.h"
#include "net/srv.h"
#include "server/certificates.h"
#include "server/checks.h"
#include "server/descriptors.h"
#include "server/resize.h"
#include "server/server_pause.h"
#include "server/threads.h"
#include "server/upstreams.h"
#include "service/session.h"
#include "sessions/carry_over.h"
#include "sessions/overload.h"
#include "sessions/rebalance.h"
#include "sessions/session_spread.h"
#include "sessions/worker.h"
#include "sessions/worker_assign.h"
#include "sessions/workers.h"
#include "spare/spare.h"
#include "spare/spares.h"

#define SERVER_LOOKUP_RETRY_NS (10 * NS_PER_S) /* longest pause after a failed lookup */

/* Time for lookups of the hosts of one SRV service; hosts left out are first in the next lookup. */
#define SERVER_LOOKUP_SERVICE_NS (5 * NS_PER_S)

/* ---- any loop ---- */

void server_unhold(struct server *sv)
{
    if (ref_release(&sv->holds) && sv->events.drained)
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

static void server_count(struct server *sv, const struct service *service)
{
    atomic_fetch_add_explicit(&sv->sessions, 1, memory_order_relaxed);
    descriptor_budget_count(&sv->descriptors, service->ops->descriptors);
    ref_hold(&sv->holds);
}

int server_enter(struct server *sv, const struct service *service)
{
    if (!descriptor_budget_left(&sv->descriptors, service->ops->descriptors))
        return -EMFILE;
    server_count(sv, service);
    return 0;
}

static void server_on_ended(void *cookie, const struct service *service)
{
    struct server *sv = cookie;

    descriptor_budget_release(&sv->descriptors, service->ops->descriptors);
    listener_left(service);
    atomic_fetch_sub_explicit(&sv->sessions, 1, memory_order_relaxed);
    server_unhold(sv);
}

void server_left(struct server *sv, const struct service *service)
{
    server_on_ended(sv, service);
}

static void server_on_accepted(void *cookie, struct session *s)
{
    struct server *sv = cookie;
    const struct service *service = s->service;
    unsigned suppressed;
    int rc;

    server_count(sv, service);
    rc = worker_assign(sv->threads.workers, s);
    if (rc == 0)
        return;
    if (log_allowed(&sv->refused_limit, NS_PER_S, &suppressed))
        log_event_again(LOG_LISTENER, LOG_LEVEL_WARNING,
                        "listen %s: no worker accepts a client: %s; the client is reset%s",
                        service->listener, worker_assign_why(rc), LOG_SUPPRESSED(suppressed));
    session_refuse(s);
    server_on_ended(sv, service);
}

static void server_on_socket_opened(void *cookie)
{
    struct server *sv = cookie;

    ref_hold(&sv->holds);
}

static void server_on_socket_stopped(void *cookie)
{
    server_unhold(cookie);
}

static void server_on_replaced(void *cookie, struct list *generations)
{
    carry_over_begin(((struct server *)cookie)->carry_over, generations);
}

/* ---- main ---- */

static int server_create_workers(struct server *sv)
{
    struct worker_env env = {.draining = &sv->draining,
                             .moves = loop_group_moves(sv->threads.workers),
                             .descriptors = &sv->descriptors,
                             .buffered = overload_buffered(sv->overload),
                             .ended = server_on_ended,
                             .cookie = sv};
    int rc = workers_create(&sv->workers, sv->threads.workers, &env);

    if (rc < 0)
        log_error("server: cannot create the workers: %s", strerror(-rc));
    return rc;
}

static int server_create_rebalance(struct server *sv)
{
    struct rebalance_env env = {
        .control = threads_control(&sv->threads),
        .workers = {.loops = sv->threads.workers, .list = workers_list(sv->workers)},
        .draining = &sv->draining};
    int rc = rebalance_create(&sv->rebalance, &env);

    if (rc == 0)
        rebalance_use(sv->rebalance, &sv->conf->worker.rebalance);
    return rc;
}

static int server_create_spread(struct server *sv)
{
    const struct session_spread_conf conf = {
        .control = threads_control(&sv->threads),
        .workers = {.loops = sv->threads.workers, .list = workers_list(sv->workers)},
        .draining = &sv->draining};

    return session_spread_create(&sv->spread, &conf);
}

static int server_create_upstreams(struct server *sv)
{
    const struct upstream_env env = {.workers = sv->threads.workers,
                                     .handshakes = sv->threads.handshakes,
                                     .spares = &spare_upstream_ops};

    return upstreams_create(&sv->upstreams, threads_control(&sv->threads), &env);
}

static int server_create_resolver(struct server *sv)
{
    struct resolver_conf conf = {.executor = sv->threads.lookups,
                                 .control = threads_control(&sv->threads),
                                 .retry_ns = SERVER_LOOKUP_RETRY_NS,
                                 .service_ns = SERVER_LOOKUP_SERVICE_NS,
                                 .seed = hash_seed(),
                                 .lookup = resolve_host,
                                 .lookup_service = srv_resolve,
                                 .leads_back = proxy_loop_is,
                                 .hold = proxy_loop_hold,
                                 .release = proxy_loop_release};

    return resolver_create(&sv->resolver, &conf);
}

static int server_create_checks(struct server *sv)
{
    struct checks_conf conf = {.control = threads_control(&sv->threads),
                               .loops = sv->threads.workers,
                               .workers = workers_list(sv->workers)};

    return checks_create(&sv->checks, &conf);
}

static int server_create_listeners(struct server *sv)
{
    struct listeners_env env = {.control = threads_control(&sv->threads),
                                .boss = sv->threads.boss,
                                .workers = sv->threads.workers,
                                .executor = sv->threads.executor,
                                .handshakes = sv->threads.handshakes,
                                .connection_limit = &sv->connection_limit,
                                .descriptors = &sv->descriptors,
                                .store = &sv->events.sockets,
                                .admit = server_on_admit,
                                .accepted = server_on_accepted,
                                .opened = server_on_socket_opened,
                                .stopped = server_on_socket_stopped,
                                .replaced = server_on_replaced,
                                .cookie = sv};
    struct carry_over_conf carry_over = {.control = threads_control(&sv->threads),
                                         .boss = sv->threads.boss,
                                         .workers = sv->threads.workers,
                                         .list = workers_list(sv->workers)};
    int rc = carry_over_create(&sv->carry_over, &carry_over);

    return rc == 0 ? listeners_create(&sv->listeners, &env) : rc;
}

/* Create the parts of ${sv}, which is empty: no upstream, listener or certificate yet. */
static int server_create_parts(struct server *sv)
{
    int rc = threads_create(&sv->threads, sv->conf);

    if (rc == 0)
        rc = overload_create(&sv->overload, &sv->conf->overload, threads_control(&sv->threads),
                             sv->threads.workers, &sv->connection_limit);
    if (rc == 0)
        rc = server_create_workers(sv);
    if (rc == 0)
        rc = server_create_rebalance(sv);
    if (rc == 0)
        rc = server_create_spread(sv);
    if (rc == 0)
        rc = server_create_upstreams(sv);
    if (rc == 0)
        rc = server_create_resolver(sv);
    if (rc == 0)
        rc = server_create_checks(sv);
    if (rc == 0)
        rc = spares_create(&sv->spares, sv->threads.workers, workers_list(sv->workers));
    if (rc == 0)
        rc = certificates_create(&sv->certificates, threads_control(&sv->threads),
                                 sv->threads.executor);
    return rc == 0 ? server_create_listeners(sv) : rc;
}

/* Descriptors that a client of any listener of ${conf} needs at most. */
static unsigned server_client_descriptors(const struct server_conf *conf)
{
    for (unsigned i = 0; i < conf->n_listeners; i++)
        if (conf->listeners[i].service == LISTENER_PROXY)
            return 2;
    return 1;
}

/* Use the first configuration, then limit what clients may use of the descriptors that are left. */
static int server_use_first(struct server *sv)
{
    unsigned n_boss = loop_group_size(sv->threads.boss), sockets;
    int rc = server_change_create(sv);

    if (rc < 0)
        return rc;
    server_loops_set_limits(sv, sv->conf);
    sockets = listeners_sockets_wanted(sv->listeners);
    if (n_boss > sockets)
        log_warning(
            "boss: %u threads, only %u listen sockets: surplus threads stay idle (see reuseport)",
            n_boss, sockets);
    return descriptors_set_limit(&sv->descriptors, &sv->aside, server_client_descriptors(sv->conf));
}

int server_create(struct server **out, const struct server_conf *conf,
                  const struct server_events *events)
{
    struct server *sv = calloc(1, sizeof(*sv));
    int rc;

    if (!sv)
        return -ENOMEM;
    sv->conf = conf;
    list_init(&sv->pauses);
    lock_init(&sv->pauses_lock);
    sv->events = *events;
    ref_init(&sv->holds);
    connection_limit_init(&sv->connection_limit, &conf->quota);
    sv->descriptors.max = UINT_MAX; /* until descriptors_set_limit() */
    rc = server_create_parts(sv);
    if (rc == 0)
        rc = server_use_first(sv);
    if (rc < 0) {
        server_destroy(sv);
        return rc;
    }
    *out = sv;
    return 0;
}

int server_start_worker(struct server *sv)
{
    int rc = loop_group_start(sv->threads.workers);

    if (rc < 0)
        log_error("cannot start a worker thread: %s (ulimit -u; TasksMax= of the unit; pids.max of "
                  "the control group)",
                  strerror(-rc));
    return rc;
}

static void server_on_started(void *cookie, int rc)
{
    if (rc < 0)
        promise_fail(cookie, rc);
    else
        promise_succeed(cookie);
}

/* Look up names, and check servers that start down, as a reload does. */
static int server_await_start(struct server *sv)
{
    struct promise started;
    const struct server_reload first = {
        .conf = sv->conf, .done = server_on_started, .cookie = &started};
    int rc;

    promise_init(&started, NULL);
    rc = server_change_begin(sv, SERVER_STARTS, &first);
    if (rc < 0)
        log_error("cannot start the control thread: %s", strerror(-rc));
    else if (promise_await(&started, CLOCK_NEVER) == 0)
        rc = promise_error(&started);
    promise_close(&started);
    return rc;
}

int server_start(struct server *sv)
{
    int rc = server_await_start(sv);

    if (rc < 0)
        return rc;
    sv->started = true;
    sv->started_at_s = (int64_t)time(NULL);
    rc = overload_start(sv->overload);
    if (rc < 0)
        return rc;
    spares_refill(sv->spares);
    return listeners_start(sv->listeners);
}

int server_submit_slow(struct server *sv, struct task *t)
{
    return executor_submit(sv->threads.executor, t);
}

void server_drain(struct server *sv)
{
    if (atomic_exchange(&sv->draining, true))
        return;
    listeners_stop(sv->listeners);
    workers_drain(sv->workers);
    server_unhold(sv);
}

/* Stop accepting, but do not drain workers: that would end idle echo sessions by FIN. */
static void server_stop_listeners(struct server *sv)
{
    if (atomic_exchange(&sv->draining, true))
        return;
    listeners_stop(sv->listeners);
    server_unhold(sv);
}

/* Stop bosses first: then workers get no new sessions. If a group hangs, stop the others too. */
int server_stop(struct server *sv, unsigned *cut)
{
    int boss, workers, control, executors;

    if (sv->started)
        server_stop_listeners(sv); /* listen sockets close on their loops */
    boss = threads_end_boss(&sv->threads);
    *cut = server_sessions(sv);
    workers = threads_end_workers(&sv->threads);
    control = threads_end_control(&sv->threads);
    executors = threads_end_executors(&sv->threads);
    if (boss < 0 || workers < 0 || control < 0)
        return -ETIMEDOUT;
    MUST(server_sessions(sv) == 0);
    return executors < 0 ? -EBUSY : 0;
}

void server_hold(struct server *sv)
{
    ref_hold(&sv->holds);
}

unsigned server_sessions(const struct server *sv)
{
    return atomic_load_explicit(&sv->sessions, memory_order_relaxed);
}

/* End loops that never had a thread, before their workers are freed. */
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
    server_pause_free_all(sv);
    lock_close(&sv->pauses_lock);
    carry_over_destroy(sv->carry_over);
    listeners_destroy(sv->listeners);
    session_spread_destroy(sv->spread);
    workers_destroy(sv->workers);
    rebalance_destroy(sv->rebalance);
    spares_destroy(sv->spares);
    checks_destroy(sv->checks);
    certificates_destroy(sv->certificates);
    resolver_destroy(sv->resolver);
    proxy_loop_release(sv->proxy_loop);
    upstreams_destroy(sv->upstreams);
    threads_destroy(&sv->threads);
    overload_destroy(sv->overload); /* after the loops, which use its memory account */
    free(sv);
}
