/* server/server_loops: steps of a change: the threads of the loops. See server_internal.h. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "engine/loop.h"
#include "engine/loop_group.h"
#include "listen/listeners.h"
#include "server/server_admin.h"
#include "server/server_internal.h"
#include "sessions/rebalance.h"

/* Interval of lines about changes that fail: the load asks again and again. */
#define SERVER_LOOPS_LOG_NS (60 * NS_PER_S)

int server_prepare_threads(struct server *sv, unsigned boss, unsigned workers,
                           struct resize *change)
{
    *change = (struct resize){.threads = &sv->threads,
                              .workers = sv->workers,
                              .spares = sv->spares,
                              .spread = sv->spread,
                              .descriptors = &sv->descriptors};
    return resize_prepare(change, boss, workers);
}

static bool server_loops_is_same(const struct server_workers_conf *a,
                                 const struct server_workers_conf *b)
{
    return a->n == b->n && a->min == b->min && a->max == b->max;
}

/* An administrator's number lasts until the configured value changes. */
static unsigned server_loops_set_by_admin(struct server_change *change)
{
    const struct server *sv = server_of_change(change);

    if (change->phase == SERVER_RESIZES)
        return change->reload.is_by_load ? 0 : change->reload.workers;
    return server_loops_is_same(&change->reload.conf->worker.threads, &sv->conf->worker.threads)
               ? atomic_load(&sv->admin_threads)
               : 0;
}

/* Number of workers after ${change}. */
static unsigned server_loops_wanted(struct server_change *change)
{
    const struct server *sv = server_of_change(change);
    unsigned by_admin = server_loops_set_by_admin(change);

    if (by_admin > 0)
        return by_admin;
    if (change->phase == SERVER_RESIZES && change->reload.workers > 0)
        return change->reload.workers;
    return threads_workers(&change->reload.conf->worker.threads,
                           loop_group_in_use(sv->threads.workers));
}

unsigned server_loops_workers(struct server_change *change)
{
    return change->phase == SERVER_CREATES
               ? loop_group_in_use(server_of_change(change)->threads.workers)
               : change->resize.change.workers.n_in_use;
}

/* Log why ${change} is refused. The load may ask for it again and again. */
static void server_loops_refuse(struct server_change *change, unsigned workers, int error)
{
    unsigned suppressed;

    if (change->phase != SERVER_RESIZES)
        log_error("reload: cannot change to %u boss and %u worker threads: %s",
                  change->reload.conf->boss.threads, workers, strerror(-error));
    else if (!change->reload.is_by_load ||
             log_allowed(&server_of_change(change)->resize_limit, SERVER_LOOPS_LOG_NS, &suppressed))
        log_error("workers: cannot change to %u threads: %s", workers, strerror(-error));
}

int server_loops_prepare(struct server_change *change)
{
    unsigned boss = change->reload.conf->boss.threads, workers = server_loops_wanted(change);
    int rc = server_prepare_threads(server_of_change(change), boss, workers, &change->resize);

    if (rc < 0)
        server_loops_refuse(change, workers, rc);
    return rc;
}

/* An administrator's io_ratio lasts until the configured value changes. */
static void server_loops_commit_io_ratio(struct server *sv, unsigned io_ratio)
{
    if (sv->admin_io_ratio > 0 && io_ratio == sv->conf->worker.io_ratio)
        return;
    sv->admin_io_ratio = 0;
    MUST(loop_group_set_io_ratio(sv->threads.workers, io_ratio) == 0);
}

void server_loops_set_limits(struct server *sv, const struct server_conf *conf)
{
    unsigned min = 0, max = 0;

    if (conf->worker.threads.min > 0 && atomic_load(&sv->admin_threads) == 0)
        threads_worker_limits(&conf->worker.threads, &min, &max);
    atomic_store(&sv->scale_min, min);
    atomic_store(&sv->scale_max, max);
}

static void server_loops_log(const struct server_change *change, unsigned before, unsigned now)
{
    const struct server_reload *reload = &change->reload;

    if (change->phase != SERVER_RESIZES)
        return;
    if (!reload->is_by_load)
        log_event(LOG_LOOP, LOG_LEVEL_NOTICE, "workers: %u -> %u threads, by an administrator%s",
                  before, now, reload->workers > 0 ? "" : ": as configured");
    else
        log_event(LOG_LOOP, LOG_LEVEL_NOTICE,
                  "workers: %u -> %u threads: busy for %u %% of the last %.0f s, %s", before, now,
                  reload->load_percent, (double)reload->load_over_ns / (double)NS_PER_S,
                  now > before ? "too much" : "little enough for fewer");
}

static void server_loops_count(struct server *sv, unsigned before, unsigned now)
{
    atomic_fetch_add_explicit(&sv->n_scaled_up, now > before, memory_order_relaxed);
    atomic_fetch_add_explicit(&sv->n_scaled_down, now < before, memory_order_relaxed);
}

void server_loops_commit(struct server_change *change)
{
    struct server *sv = server_of_change(change);
    const struct server_conf *conf = change->reload.conf;
    unsigned before = loop_group_in_use(sv->threads.workers);
    unsigned now = change->resize.change.workers.n_in_use;

    resize_commit(&change->resize);
    atomic_store(&sv->admin_threads, server_loops_set_by_admin(change));
    server_loops_set_limits(sv, conf);
    server_loops_log(change, before, now);
    if (change->reload.is_by_load)
        server_loops_count(sv, before, now);
    server_loops_commit_io_ratio(sv, conf->worker.io_ratio);
    rebalance_use(sv->rebalance, &conf->worker.rebalance);
    loop_group_set_queue_wait_goal(sv->threads.workers, conf->worker.queue_wait_goal_ns);
}

void server_loops_cancel(struct server_change *change)
{
    resize_cancel(&change->resize);
}

/* ---- workers that accept ---- */

int server_loops_prepare_sockets(struct server_change *change)
{
    unsigned workers = server_loops_workers(change);
    int rc;

    if (change->phase != SERVER_RESIZES || change->reload.conf->boss.threads > 0)
        return 0;
    rc = listeners_prepare_acceptors(server_of_change(change)->listeners, workers);
    if (rc < 0)
        server_loops_refuse(change, workers, rc);
    return rc;
}

void server_loops_commit_sockets(struct server_change *change)
{
    if (change->phase == SERVER_RESIZES && change->reload.conf->boss.threads == 0)
        listeners_commit_acceptors(server_of_change(change)->listeners,
                                   server_loops_workers(change));
}

void server_loops_cancel_sockets(struct server_change *change)
{
    if (change->phase == SERVER_RESIZES && change->reload.conf->boss.threads == 0)
        listeners_cancel_acceptors(server_of_change(change)->listeners);
}

/* ---- any number, by an administrator or by load ---- */

unsigned server_admin_threads(const struct server *sv, struct server_workers_conf *configured)
{
    *configured = sv->conf->worker.threads;
    return atomic_load(&sv->admin_threads);
}

struct server_scale server_admin_scale(const struct server *sv)
{
    return (struct server_scale){
        .set = atomic_load(&sv->admin_threads),
        .min = atomic_load(&sv->scale_min),
        .max = atomic_load(&sv->scale_max),
        .n_up = atomic_load_explicit(&sv->n_scaled_up, memory_order_relaxed),
        .n_down = atomic_load_explicit(&sv->n_scaled_down, memory_order_relaxed)};
}

/* Use ${n} workers from the start on. */
static int server_loops_start(struct server *sv, unsigned n)
{
    struct resize resize;
    int rc = server_prepare_threads(sv, sv->conf->boss.threads, n, &resize);

    MUST(!sv->started);
    if (rc < 0)
        return rc;
    rc = sv->conf->boss.threads > 0 ? 0 : listeners_prepare_acceptors(sv->listeners, n);
    if (rc < 0) {
        resize_cancel(&resize);
        return rc;
    }
    resize_commit(&resize);
    if (sv->conf->boss.threads == 0)
        listeners_commit_acceptors(sv->listeners, n);
    return 0;
}

int server_admin_start_threads(struct server *sv, unsigned n)
{
    int rc = server_loops_start(sv, n);

    if (rc < 0)
        return rc;
    atomic_store(&sv->admin_threads, n);
    server_loops_set_limits(sv, sv->conf);
    return 0;
}

int server_admin_start_scale(struct server *sv, unsigned n)
{
    unsigned before = loop_group_in_use(sv->threads.workers);
    unsigned wanted = threads_workers(&sv->conf->worker.threads, n);
    int rc;

    if (atomic_load(&sv->scale_max) == 0 || wanted == before)
        return 0;
    rc = server_loops_start(sv, wanted);
    if (rc == 0)
        log_event(LOG_LOOP, LOG_LEVEL_NOTICE,
                  "workers: %u threads at the start: the process before has %u", wanted, n);
    return rc;
}

bool server_scale(struct server *sv, struct server_reload *resize)
{
    struct autoscale_wish wish;

    if (atomic_load(&sv->draining) || !autoscale_plan_wish(&sv->autoscale.plan, &wish))
        return false;
    autoscale_forget(&sv->autoscale);
    resize->workers = wish.n;
    resize->is_by_load = true;
    resize->load_percent = wish.percent;
    resize->load_over_ns = wish.over_ns;
    return true;
}
