/*
 * server/server: boss and workers: who runs what, where, and in what order it all ends.
 *
 * A server owns the boss group (accepts), the worker group (everything else of a connection), the upstreams
 * and the listeners. Its life is: create (binds, no thread yet) -> start -> drain -> stop -> destroy.
 */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "engine/chooser.h"
#include "server/listener.h"
#include "service/upstream.h"

struct server;

struct server_boss_conf {
    unsigned threads;
    unsigned accept_batch; /* accepts at most per readiness */
};

struct server_worker_conf {
    unsigned threads;        /* 0: two a processor */
    unsigned io_ratio;       /* 1 to 100, percent of a turn's time that is for I/O */
    int64_t task_quantum_ns; /* the most a turn spends on tasks */
    unsigned max_pending_tasks;
    enum chooser_kind chooser;
};

/* One generation of configuration; immutable, and it outlives the server. */
struct server_conf {
    struct server_boss_conf boss;
    struct server_worker_conf worker;
    struct listener_conf *listeners;
    unsigned n_listeners;
    struct upstream_conf *upstreams;
    unsigned n_upstreams;
};

/* What the server tells the process around it. */
struct server_events {
    /* The last session ended after server_drain(). Called once, on any loop or in server_drain() or server_stop(). */
    void (*drained)(void *cookie);
    void *cookie;
};

/*
 * server_create(out, conf, events):
 * Bind and listen on every address, build loops and upstreams; nothing is accepted and no thread runs yet.
 * What fails is logged with the address or name it failed on.
 *
 * Thread: main
 * Owns:   ${conf} is borrowed and must outlive the server; ${events} is copied
 * Errors: 0; -errno of the first thing that failed
 */
int server_create(struct server **out, const struct server_conf *conf,
                  const struct server_events *events) MUST_CHECK;

/*
 * server_start(sv):
 * Begin to accept. Threads start with the first work each loop gets.
 *
 * Thread: main
 * Errors: 0; -EAGAIN (no thread could be started)
 */
int server_start(struct server *sv) MUST_CHECK;

/*
 * server_drain(sv):
 * Stop accepting, close the listen sockets and let sessions finish; events->drained follows.
 * A second call does nothing.
 *
 * Thread: main
 * Errors: none
 */
void server_drain(struct server *sv);

/*
 * server_stop(sv):
 * End what is left, breaking open connections visibly (RST), and wait for all threads: boss, then workers.
 * Returns how many sessions were cut.
 *
 * Thread: main
 * Errors: none
 */
unsigned server_stop(struct server *sv);

/*
 * server_sessions(sv):
 * How many sessions are open now.
 *
 * Thread: any
 * Errors: none
 */
unsigned server_sessions(const struct server *sv);

/*
 * server_destroy(sv):
 * Free everything; the server was stopped or never started. NULL is allowed.
 *
 * Thread: main
 * Errors: none
 */
void server_destroy(struct server *sv);

#endif
