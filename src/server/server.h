/*
 * server/server: boss and workers: who runs what, where, and in what order it all ends.
 *
 * A server owns the boss group (accepts), the worker group (everything else of a connection), the
 * upstreams and the listeners. Its life is: create (binds, no thread yet) -> start -> drain -> stop
 * -> destroy.
 */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/must.h"
#include "engine/chooser.h"
#include "engine/affinity.h"
#include "server/listener.h"
#include "server/overload.h"
#include "upstream/upstream.h"

struct server;

/* Which processors the threads of a group may run on. */
enum server_affinity {
    SERVER_AFFINITY_OFF,  /* any */
    SERVER_AFFINITY_AUTO, /* thread i on the i-th of those the process may use, and round again */
    SERVER_AFFINITY_LIST  /* thread i on the i-th of the list, and round again */
};

struct server_cpus {
    enum server_affinity affinity;
    unsigned *list; /* SERVER_AFFINITY_LIST: processor numbers */
    unsigned n;
};

struct server_boss_conf {
    unsigned threads;
    unsigned accept_batch; /* accepts at most per readiness */
    struct server_cpus cpus;
    enum affinity_scheduling scheduling;
};

struct server_worker_conf {
    unsigned threads;        /* 0: two a processor, or by the CPU quota */
    unsigned io_ratio;       /* 1 to 100, percent of a turn's time that is for I/O */
    int64_t task_quantum_ns; /* the most a turn spends on tasks */
    unsigned max_pending_tasks;
    enum chooser_kind chooser;
    unsigned
        rebuild_threshold; /* polls in a row that return early with nothing; 0: never rebuild */
    int64_t stall_threshold_ns; /* a turn that takes longer is a stall; 0: nobody looks */
    struct server_cpus cpus;
};

struct server_executor_conf {
    unsigned threads;
    unsigned max_pending_tasks;
};

/* One generation of configuration; immutable, and it outlives the server. */
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
 * Which of the upstreams ${name} is.
 *
 * Thread: any
 * Errors: -1
 */
static inline int server_conf_find_upstream(const struct server_conf *conf, const char *name)
{
    for (unsigned i = 0; i < conf->n_upstreams; i++)
        if (strcmp(conf->upstreams[i].name, name) == 0)
            return (int)i;
    return -1;
}

/* What the server tells the process around it. */
struct server_events {
    /*
     * The last session ended after server_drain(). Called once, on any loop or in server_drain() or
     * server_stop().
     */
    void (*drained)(void *cookie);
    void *cookie;
    /*
     * The access log of that name (listener_access_log_conf.where), open; NULL for "off". In
     * server_create(). NULL: there is none.
     */
    struct access_log *(*access_log)(void *access_cookie, const char *where);
    void *access_cookie;
};

/*
 * server_create(out, conf, events):
 * Bind and listen on every address, build loops and upstreams; nothing is accepted and no thread
 * runs yet. What fails is logged with the address or name it failed on.
 *
 * Thread: main
 * Owns:   ${conf} is borrowed and must outlive the server; ${events} is copied
 * Errors: 0; -errno of the first thing that failed
 */
int server_create(struct server **out, const struct server_conf *conf,
                  const struct server_events *events) NODISCARD;

/*
 * server_start(sv):
 * Begin to accept. Before that the host names of servers are looked up on the executor; what is not
 * known after 3 s is left for later. Threads start with the first work each loop gets.
 *
 * Thread: main
 * Errors: 0; -EAGAIN (no thread could be started)
 */
int server_start(struct server *sv) NODISCARD;

/*
 * server_drain(sv):
 * Stop accepting, close the listen sockets and let sessions finish; events->drained follows.
 * A second call does nothing.
 *
 * Thread: main
 */
void server_drain(struct server *sv);

/*
 * server_stop(sv, cut):
 * End what is left, breaking open connections visibly (RST), and wait for all threads: boss, then
 * workers, then the executor. ${cut} is how many sessions were open. A thread that hangs is logged
 * with the task or handler it is in; the server can then not be destroyed.
 *
 * Thread: main
 * Errors: 0; -ETIMEDOUT (some loop hangs); -EBUSY (all loops have ended, but slow work such as a
 *         lookup is still under way: nothing is lost by that, only the server can not be destroyed)
 */
int server_stop(struct server *sv, unsigned *cut) NODISCARD;

/*
 * server_watch(sv) / server_watch_interval_ns(sv):
 * Look at every loop's turn: what stalls, and what goes on again, is logged with the task or
 * handler it is in. True when every loop turns. To be called so often.
 *
 * Thread: main
 * Units:  ns
 */
bool server_watch(struct server *sv);
int64_t server_watch_interval_ns(const struct server *sv);

/*
 * server_log_stats(sv):
 * Write what every loop, the executor and every listener counted to the log, at notice level, some
 * lines for each.
 *
 * Thread: main
 */
void server_log_stats(struct server *sv);

/*
 * server_sessions(sv):
 * How many sessions are open now.
 *
 * Thread: any
 */
unsigned server_sessions(const struct server *sv);

/*
 * server_destroy(sv):
 * Free everything; the server was stopped or never started. NULL is allowed.
 *
 * Thread: main
 */
void server_destroy(struct server *sv);

#endif
