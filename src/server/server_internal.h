/* server/server_internal: struct server, for start and end (server.c) and its changes. */
#ifndef SERVER_SERVER_INTERNAL_H
#define SERVER_SERVER_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/ref.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "engine/lock.h"
#include "engine/task.h"
#include "limits/connection_limit.h"
#include "net/descriptor_budget.h"
#include "server/autoscale.h"
#include "server/descriptors.h"
#include "server/resize.h"
#include "server/server.h"
#include "server/server_conf.h"
#include "server/threads.h"

struct carry_over;
struct certificates;
struct certificates_change;
struct checks;
struct checks_change;
struct listeners;
struct listeners_change;
struct overload;
struct proxy_loop;
struct rebalance;
struct resolver;
struct spare_pools_change;
struct spares;
struct upstreams;
struct upstreams_change;
struct workers;

/*
 * A start is two changes: what needs no thread, before privileges are dropped; then the rest. An
 * edit takes those steps of a reload that look at servers.
 */
enum server_phase {
    SERVER_CREATES = 1,
    SERVER_STARTS = 2,
    SERVER_EDITS = 4, /* other servers of some upstreams, nothing else */
    SERVER_RELOADS = 8,
    SERVER_RESIZES = 16 /* another number of workers, nothing else */
};

/*
 * A change of the configuration: see server/server_reload.c. Used by main while SERVER_CREATES,
 * else by the control loop only, except `under_way` and `given_up`.
 */
struct server_change {
    struct server_reload reload;
    enum server_phase phase;
    struct task task; /* begins the change, and later ends it */
    struct task give_up;
    atomic_bool under_way;
    atomic_bool given_up;
    bool waits;          /* the change waits for new names, or first checks */
    unsigned n_prepared; /* steps done so far, or left out in this phase */
    struct resize resize;
    struct timer settle; /* SERVER_EDITS: waits for the ends of earlier changes */
    int64_t settle_by_ns;
    struct upstreams_change *upstreams;
    struct descriptors_aside aside;
    struct checks_change *checks;
    struct certificates_change *certificates;
    struct resolver_change *names;
    struct proxy_loop *proxy_loop; /* a reference */
    struct spare_pools_change *spares;
    struct listeners_change *listeners;
};

struct server {
    const struct server_conf *conf;
    struct server_events events;
    struct threads threads;
    struct workers *workers;
    struct upstreams *upstreams;
    struct proxy_loop *proxy_loop;
    struct resolver *resolver;
    struct checks *checks;
    struct certificates *certificates;
    struct spares *spares;
    struct session_spread *spread;
    struct carry_over *carry_over;
    struct rebalance *rebalance;
    struct listeners *listeners;
    bool started;
    int64_t started_at_s; /* Unix time of server_start() */
    atomic_bool draining;
    atomic_uint sessions;
    struct connection_limit connection_limit;
    struct overload *overload;            /* NULL: no limits */
    struct descriptor_budget descriptors; /* see note: descriptors in server/descriptors.h */
    struct descriptors_aside aside;
    struct log_limit refused_limit, resize_limit;
    struct server_change change;
    struct list pauses;      /* changed by the control loop, or main before start */
    struct lock pauses_lock; /* taken to change `pauses`, and by other threads to read it */
    atomic_uint n_pauses;
    atomic_uint admin_io_ratio;       /* see server/server_admin; 0: as configured */
    atomic_uint admin_threads;        /* workers; the same */
    struct autoscale autoscale;       /* main only */
    atomic_uint scale_min, scale_max; /* limits for it; max 0: the number is fixed */
    atomic_uint_least64_t n_scaled_up, n_scaled_down; /* relaxed */
    /*
     * note: holds. Number of open sessions and listen sockets, plus one until the drain or stop
     * begins; at 0 the server is drained.
     */
    struct ref holds;
};

/* A part of a server. NULL: nothing to do. */
struct server_step {
    unsigned phases; /* those that take this step, besides SERVER_RELOADS, which takes all */
    int (*prepare)(
        struct server_change *change); /* -EINPROGRESS: server_change_*_ready() follows */
    void (*commit)(struct server_change *change);
    void (*cancel)(struct server_change *change);
};

#define SERVER_STEPS 13

extern const struct server_step server_steps[SERVER_STEPS];

/* server_of_change(change): the server of ${change}. */
static inline struct server *server_of_change(struct server_change *change)
{
    return CONTAINER_OF(change, struct server, change);
}

/*
 * server_change_names_ready(change, error) / server_change_checks_ready(change):
 * Go on with ${change}, a struct server_change: the new names / new servers were looked up /
 * checked.
 *
 * Thread: control loop
 */
void server_change_names_ready(void *change, int error);
void server_change_checks_ready(void *change);

/*
 * server_loops_prepare(change) / server_loops_commit(change) / server_loops_cancel(change):
 * Step of SERVER_RESIZES: the threads of the loops.
 *
 * Thread: control loop
 * Errors: as resize_prepare()
 */
int server_loops_prepare(struct server_change *change) NODISCARD;
void server_loops_commit(struct server_change *change);
void server_loops_cancel(struct server_change *change);

/*
 * server_loops_prepare_sockets(change) / server_loops_commit_sockets(change) /
 * server_loops_cancel_sockets(change):
 * Step of SERVER_RESIZES: the listen sockets of workers that accept. Other phases: do nothing.
 *
 * Thread: control loop
 * Errors: as listeners_prepare_acceptors()
 */
int server_loops_prepare_sockets(struct server_change *change) NODISCARD;
void server_loops_commit_sockets(struct server_change *change);
void server_loops_cancel_sockets(struct server_change *change);

/*
 * server_loops_workers(change) / server_loops_set_limits(sv, conf):
 * Number of workers after ${change} / let the number of workers be as ${conf} says.
 *
 * Thread: control loop, or main before start
 */
unsigned server_loops_workers(struct server_change *change);
void server_loops_set_limits(struct server *sv, const struct server_conf *conf);

/*
 * server_edits_prepare(change) / server_edits_cancel(change) / server_edits_commit(change):
 * Steps of SERVER_EDITS: wait until the changes before have ended, so far that memory stays
 * bounded; server_change_checks_ready() follows, or the error -EAGAIN after 2 s / end that wait /
 * log the edits and fill in what became of them. Other phases: do nothing.
 *
 * Thread: control loop
 * Errors: 0; -EINPROGRESS
 */
int server_edits_prepare(struct server_change *change) NODISCARD;
void server_edits_cancel(struct server_change *change);
void server_edits_commit(struct server_change *change);

/*
 * server_change_create(sv):
 * Use sv->conf in the empty ${sv}, as far as that needs no thread: bind the listeners.
 *
 * Thread: main, before any other thread
 * Errors: as server_create()
 */
int server_change_create(struct server *sv) NODISCARD;

/*
 * server_change_begin(sv, phase, reload):
 * Begin a change on the control loop; done() of ${reload} follows, also if given up.
 *
 * Thread: main, while no change is under way
 * Owns:   as server_reload()
 * Errors: as loop_submit()
 */
int server_change_begin(struct server *sv, enum server_phase phase,
                        const struct server_reload *reload) NODISCARD;

/* Longest wait for new host names, at start and in a reload; at start also for the first checks. */
#define SERVER_WAIT_NS (3 * NS_PER_S)

#endif
