/*
 * server/server: bosses, workers, upstreams and listeners, from start to end.
 *
 * Life: create (binds, no thread yet) -> start -> drain -> stop -> destroy.
 */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/must.h"
#include "engine/affinity.h"
#include "engine/chooser.h"
#include "server/listener.h"
#include "server/overload.h"
#include "upstream/upstream.h"

struct server;
struct resize;

/* Most threads; groups have room for so many. */
#define SERVER_BOSS_MAX    64
#define SERVER_WORKERS_MAX 256

/* CPU affinity of a group's threads. */
enum server_affinity {
    SERVER_AFFINITY_OFF,
    SERVER_AFFINITY_AUTO, /* thread i on the i-th usable processor, cyclically */
    SERVER_AFFINITY_LIST  /* the same with `list` */
};

struct server_cpus {
    enum server_affinity affinity;
    unsigned *list; /* processor numbers */
    unsigned n;
};

struct server_boss_conf {
    unsigned threads;
    unsigned accept_batch; /* per readiness event */
    struct server_cpus cpus;
    enum affinity_scheduling scheduling;
};

struct server_worker_conf {
    unsigned threads;        /* 0: two per processor, or fewer by CPU quota */
    unsigned io_ratio;       /* 1 to 100: percent of a turn for I/O */
    int64_t task_quantum_ns; /* per turn, for tasks */
    unsigned max_pending_tasks;
    enum chooser_kind chooser;
    unsigned rebuild_threshold; /* early empty polls in a row; 0: never rebuild */
    int64_t stall_threshold_ns; /* a longer turn is a stall; 0: not watched */
    struct server_cpus cpus;
};

struct server_executor_conf {
    unsigned threads;
    unsigned max_pending_tasks;
};

/* One generation of configuration; immutable. */
struct server_conf {
    struct server_boss_conf boss;
    struct server_worker_conf worker;
    struct server_executor_conf executor;
    struct listener_conf *listeners;
    unsigned n_listeners;
    struct upstream_conf *upstreams;
    unsigned n_upstreams;
    struct quota_conf quota; /* of all listeners together */
    struct overload_conf overload;
};

/*
 * server_conf_find_upstream(conf, name):
 * Index of the upstream ${name}.
 *
 * Thread: any
 * Errors: -1 (not found)
 */
static inline int server_conf_find_upstream(const struct server_conf *conf, const char *name)
{
    for (unsigned i = 0; i < conf->n_upstreams; i++)
        if (strcmp(conf->upstreams[i].name, name) == 0)
            return (int)i;
    return -1;
}

/* Callbacks to the process. */
struct server_events {
    /*
     * The last session ended after server_drain(). Called once, by any loop, server_drain() or
     * server_stop().
     */
    void (*drained)(void *cookie);
    void *cookie;
    /*
     * Returns the log at ${where} (listener_access_log_conf.where); NULL for "off". NULL: no access
     * logs.
     */
    struct access_log *(*access_log)(void *access_cookie, const char *where);
    void *access_cookie;
};

/*
 * server_create(out, conf, events):
 * Bind and listen on every address, build loops and upstreams. Failures are logged.
 *
 * Thread: main
 * Owns:   ${conf} is borrowed and must outlive the server; ${events} is copied
 * Errors: 0; -errno of the first failure
 */
int server_create(struct server **out, const struct server_conf *conf,
                  const struct server_events *events) NODISCARD;

/*
 * server_start(sv):
 * Resolve names (for 3 s at most), run first checks (3 s), then accept.
 *
 * Thread: main
 * Errors: 0; -EAGAIN (no thread could be started); as resolver_start(), checks_start(),
 *         overload_start()
 */
int server_start(struct server *sv) NODISCARD;

/*
 * server_prepare_threads(sv, boss, workers, change):
 * As resize_prepare().
 *
 * Thread: control loop
 */
int server_prepare_threads(struct server *sv, unsigned boss, unsigned workers,
                           struct resize *change) NODISCARD;

/*
 * server_drain(sv):
 * Close the listen sockets and let sessions finish; events->drained() follows. Idempotent.
 *
 * Thread: main
 */
void server_drain(struct server *sv);

/*
 * server_stop(sv, cut):
 * Reset the remaining ${cut} sessions and join all threads. Logs a hanging thread with its task;
 * then do not destroy ${sv}.
 *
 * Thread: main
 * Errors: 0; -ETIMEDOUT (a loop hangs); -EBUSY (only an executor task hangs, such as a lookup)
 */
int server_stop(struct server *sv, unsigned *cut) NODISCARD;

/*
 * server_watch(sv) / server_watch_interval_ns(sv):
 * Log stalls of loops, and their ends; true without stalls. Call it at this interval.
 *
 * Thread: main
 */
bool server_watch(struct server *sv);
int64_t server_watch_interval_ns(const struct server *sv);

/*
 * server_log_stats(sv):
 * Log all statistics at notice level.
 *
 * Thread: main
 */
void server_log_stats(struct server *sv);

/*
 * server_sessions(sv):
 * Number of open sessions.
 *
 * Thread: any
 */
unsigned server_sessions(const struct server *sv);

/*
 * server_destroy(sv):
 * Free ${sv}, stopped or never started; NULL is allowed.
 *
 * Thread: main
 */
void server_destroy(struct server *sv);

#endif
