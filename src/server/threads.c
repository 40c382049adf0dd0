#include "server/threads.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu_quota.h"
#include "base/log.h"
#include "engine/executor.h"
#include "engine/loop_group.h"
#include "engine/watchdog.h"
#include "server/server_conf.h"
#include "tls/tls_handshakes.h"

/* Time for a loop to end, then for joining its thread. */
#define THREADS_STOP_NS (5 * NS_PER_S)
#define THREADS_JOIN_NS (1 * NS_PER_S)

/* Number of loops that threads_add() may add. */
#define THREADS_OTHERS 1

/* List the allowed processors, ascending; ${out} has CPU_SETSIZE elements. */
static unsigned threads_allowed_cpus(unsigned *out)
{
    cpu_set_t set;
    unsigned n = 0;

    if (sched_getaffinity(0, sizeof(set), &set) < 0)
        return 0; /* more processors than a cpu_set_t holds */
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set))
            out[n++] = cpu;
    return n;
}

static bool threads_has_cpu(const unsigned *cpus, unsigned n, unsigned cpu)
{
    for (unsigned i = 0; i < n; i++)
        if (cpus[i] == cpu)
            return true;
    return false;
}

static int threads_place(struct loop_group_conf *group, const char *section,
                         const struct server_cpus *conf, const unsigned *allowed,
                         unsigned n_allowed)
{
    group->cpus = conf->affinity == SERVER_AFFINITY_AUTO ? allowed : conf->list;
    group->n_cpus = conf->affinity == SERVER_AFFINITY_AUTO ? n_allowed : conf->n;
    if (conf->affinity == SERVER_AFFINITY_OFF)
        group->n_cpus = 0;
    for (unsigned i = 0; i < group->n_cpus; i++) {
        if (threads_has_cpu(allowed, n_allowed, group->cpus[i]))
            continue;
        log_error("[%s] cpu_affinity: this process cannot use processor %u: it does not exist, or "
                  "CPUAffinity= or AllowedCPUs= of the unit, taskset or a cpuset excludes it",
                  section, group->cpus[i]);
        return -EINVAL;
    }
    return 0;
}

#define THREADS_WORKERS_PER_CPU    2
#define THREADS_HANDSHAKES_PER_CPU 1

static unsigned threads_default(const char *section, unsigned per_cpu, unsigned n_allowed)
{
    struct cpu_quota quota = cpu_quota_read("/proc/self");
    unsigned n = per_cpu * (n_allowed > 0 ? n_allowed : 1);
    unsigned limit = cpu_quota_threads(&quota, per_cpu);

    if (limit >= n)
        return n;
    log_info("[%s]: %u threads instead of %u: the control group's quota is %.2f processors",
             section, limit, n, (double)quota.quota_us / (double)quota.period_us);
    return limit;
}

static unsigned threads_default_workers(void)
{
    unsigned allowed[CPU_SETSIZE];
    unsigned n = threads_default("worker", THREADS_WORKERS_PER_CPU, threads_allowed_cpus(allowed));

    return n < SERVER_WORKERS_MAX ? n : SERVER_WORKERS_MAX;
}

void threads_worker_limits(const struct server_workers_conf *conf, unsigned *min, unsigned *max)
{
    if (conf->min > 0) {
        *min = conf->min;
        *max = conf->max > 0 ? conf->max : threads_default_workers();
    } else {
        *min = *max = conf->n > 0 ? conf->n : threads_default_workers();
    }
}

unsigned threads_workers(const struct server_workers_conf *conf, unsigned n)
{
    unsigned min, max;

    threads_worker_limits(conf, &min, &max);
    if (n == 0 && min < max)
        n = threads_default_workers();
    return n < min ? min : n > max ? max : n;
}

static int threads_create_handshakes(struct threads *t, struct tls_handshakes_conf conf)
{
    unsigned allowed[CPU_SETSIZE];

    if (conf.threads == TLS_HANDSHAKES_AUTO)
        conf.threads =
            threads_default("handshake", THREADS_HANDSHAKES_PER_CPU, threads_allowed_cpus(allowed));
    if (conf.threads > TLS_HANDSHAKES_THREADS_MAX)
        conf.threads = TLS_HANDSHAKES_THREADS_MAX;
    conf.loops = loop_group_size(t->workers);
    return tls_handshakes_start(&conf, &t->handshakes);
}

static int threads_create_loops(struct threads *t, const struct server_conf *conf)
{
    const struct server_worker_conf *worker = &conf->worker;
    unsigned allowed[CPU_SETSIZE];
    unsigned n_allowed = threads_allowed_cpus(allowed);
    struct loop_conf loop = {.budget = {.io_ratio = worker->io_ratio,
                                        .quantum_ns = worker->task_quantum_ns,
                                        .goal_ns = worker->queue_wait_goal_ns},
                             .max_pending_tasks = worker->max_pending_tasks,
                             .rebuild_threshold = worker->rebuild_threshold,
                             .stall_threshold_ns = worker->stall_threshold_ns};
    struct loop_group_conf boss = {
        .name = "boss", .pool = 1, .n_loops = conf->boss.threads, .loop = loop};
    struct loop_group_conf workers = {
        .name = "work", .pool = 2, .chooser = worker->chooser, .loop = loop};
    struct loop_group_conf control = {.name = "ctrl", .pool = 4, .n_loops = 1, .loop = loop};
    int rc;

    boss.max_loops = SERVER_BOSS_MAX;
    workers.max_loops = SERVER_WORKERS_MAX;
    boss.loop.affinity.scheduling = conf->boss.scheduling;
    workers.n_loops = threads_workers(&worker->threads, 0);
    if (threads_place(&boss, "boss", &conf->boss.cpus, allowed, n_allowed) < 0 ||
        threads_place(&workers, "worker", &worker->cpus, allowed, n_allowed) < 0)
        return -EINVAL;
    rc = loop_group_create(&t->boss, &boss);
    if (rc == 0)
        rc = loop_group_create(&t->workers, &workers);
    if (rc == 0)
        rc = loop_group_create(&t->control, &control);
    if (rc < 0)
        log_error("cannot create %u boss and %u worker loops: %s", boss.n_loops, workers.n_loops,
                  strerror(-rc));
    return rc;
}

static void threads_watch_loops(struct threads *t, const struct loop_group *g, unsigned first)
{
    for (unsigned i = first; i < loop_group_size(g); i++)
        watchdog_add(t->watchdog, loop_group_at(g, i));
}

static int threads_create_watchdog(struct threads *t, int64_t threshold_ns)
{
    unsigned loops = loop_group_max(t->boss) + loop_group_max(t->workers) +
                     loop_group_max(t->control) + THREADS_OTHERS;
    int rc = watchdog_create(&t->watchdog, loops, threshold_ns);

    if (rc < 0) {
        log_error("cannot create the watchdog: %s", strerror(-rc));
        return rc;
    }
    threads_watch_loops(t, t->boss, 0);
    threads_watch_loops(t, t->workers, 0);
    threads_watch_loops(t, t->control, 0);
    return 0;
}

int threads_create(struct threads *t, const struct server_conf *conf)
{
    struct executor_conf executor = {.name = "exec",
                                     .pool = 3,
                                     .threads = conf->executor.threads,
                                     .max_pending_tasks = conf->executor.max_pending_tasks};
    struct executor_conf lookups = {.name = "name",
                                    .pool = 5,
                                    .threads = conf->executor.lookup_threads,
                                    .max_pending_tasks = conf->executor.max_pending_tasks};
    int rc;

    *t = (struct threads){.boss = NULL};
    rc = threads_create_loops(t, conf);
    if (rc == 0)
        rc = executor_create(&t->executor, &executor);
    if (rc == 0)
        rc = executor_create(&t->lookups, &lookups);
    if (rc == 0)
        rc = threads_create_handshakes(t, conf->handshake);
    if (rc == 0)
        rc = threads_create_watchdog(t, conf->worker.stall_threshold_ns);
    if (rc < 0)
        threads_destroy(t);
    return rc;
}

int threads_prepare(struct threads *t, unsigned boss, unsigned workers,
                    struct threads_change *change)
{
    int rc = loop_group_prepare(t->boss, boss, &change->boss);

    if (rc < 0)
        return rc;
    rc = loop_group_prepare(t->workers, workers, &change->workers);
    if (rc < 0)
        loop_group_cancel(&change->boss);
    return rc;
}

void threads_commit(struct threads *t, const struct threads_change *change)
{
    loop_group_commit(&change->boss);
    loop_group_commit(&change->workers);
    threads_watch_loops(t, t->boss, change->boss.first);
    threads_watch_loops(t, t->workers, change->workers.first);
}

void threads_cancel(const struct threads_change *change)
{
    loop_group_cancel(&change->workers);
    loop_group_cancel(&change->boss);
}

struct loop *threads_control(const struct threads *t)
{
    return loop_group_at(t->control, 0);
}

bool threads_watch(struct threads *t)
{
    return watchdog_check(t->watchdog);
}

bool threads_doze(struct threads *t)
{
    return watchdog_doze(t->watchdog);
}

int threads_watch_fd(const struct threads *t)
{
    return watchdog_fd(t->watchdog);
}

void threads_add(struct threads *t, struct loop *loop)
{
    MUST(!t->other);
    t->other = loop;
    watchdog_add(t->watchdog, loop);
}

int64_t threads_watch_interval_ns(const struct threads *t)
{
    return watchdog_interval_ns(t->watchdog);
}

struct loop **threads_loops(const struct threads *t, unsigned *n)
{
    const struct loop_group *const groups[] = {t->boss, t->workers, t->control};
    unsigned max = THREADS_OTHERS;
    struct loop **list;

    for (unsigned g = 0; g < ARRAY_LEN(groups); g++)
        max += loop_group_max(groups[g]);
    list = calloc(max, sizeof(struct loop *));
    *n = 0;
    for (unsigned g = 0; list && g < ARRAY_LEN(groups); g++) {
        unsigned size = loop_group_size(groups[g]);

        for (unsigned i = 0; i < size; i++)
            list[(*n)++] = loop_group_at(groups[g], i);
    }
    if (list && t->other)
        list[(*n)++] = t->other;
    return list;
}

static void threads_log_hung(const struct loop_group *g)
{
    for (unsigned i = 0; i < loop_group_size(g); i++) {
        const struct loop *loop = loop_group_at(g, i);
        struct loop_stats s;

        if (loop_state(loop) == LOOP_TERMINATED)
            continue;
        loop_stats(loop, &s);
        if (s.turn_ns > 0)
            log_error("loop %s: did not stop: this turn has lasted %.1f s, now in %s",
                      loop_name(loop), (double)s.turn_ns / (double)NS_PER_S,
                      s.doing ? s.doing : "an unnamed callback");
        else
            log_error("loop %s: did not stop within %g s, although it only waits for events",
                      loop_name(loop), (double)(THREADS_STOP_NS + THREADS_JOIN_NS) / NS_PER_S);
    }
}

static int threads_end_group(struct loop_group *g)
{
    int rc;

    loop_group_stop(g, 0, THREADS_STOP_NS);
    rc = loop_group_join_until(g, clock_now_ns() + THREADS_STOP_NS + THREADS_JOIN_NS);
    if (rc < 0)
        threads_log_hung(g);
    return rc;
}

int threads_end_boss(struct threads *t)
{
    return threads_end_group(t->boss);
}

int threads_end_workers(struct threads *t)
{
    return threads_end_group(t->workers);
}

int threads_end_control(struct threads *t)
{
    return threads_end_group(t->control);
}

/* A running task, such as a lookup, cannot be interrupted. */
static int threads_end_executor(struct executor *e, const char *name, int64_t end_ns)
{
    struct executor_stats s;
    int64_t left_ns = end_ns - clock_now_ns();
    int rc = executor_join(e, left_ns > 0 ? left_ns : 0);

    if (rc < 0) {
        executor_stats(e, &s);
        if (s.running_name)
            log_warning("%s: did not stop: task %s has been running for %.1f s", name,
                        s.running_name, (double)s.running_ns / (double)NS_PER_S);
        else
            log_warning("%s: did not stop within %g s, although no task is running", name,
                        (double)THREADS_STOP_NS / NS_PER_S);
    }
    return rc;
}

/* Drop queued tasks. */
int threads_end_executors(struct threads *t)
{
    int64_t end_ns = clock_now_ns() + THREADS_STOP_NS;
    int rc, rc_lookups;

    executor_stop(t->executor, 0);
    executor_stop(t->lookups, 0);
    rc = threads_end_executor(t->executor, "executor", end_ns);
    rc_lookups = threads_end_executor(t->lookups, "lookups", end_ns);
    return rc < 0 ? rc : rc_lookups;
}

void threads_destroy(struct threads *t)
{
    tls_handshakes_free(t->handshakes); /* before the loops, to which handshakes submit tasks */
    executor_destroy(t->lookups);
    executor_destroy(t->executor);
    loop_group_destroy(t->control);
    loop_group_destroy(t->workers);
    loop_group_destroy(t->boss);
    watchdog_destroy(t->watchdog); /* woken by whoever submits a task to a loop */
    *t = (struct threads){.boss = NULL};
}
