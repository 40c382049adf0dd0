/* server/server_internal: struct server, for start and end (server.c) and reload. */
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
struct resolver;
struct spare_pools_change;
struct spares;
struct upstream_next;
struct upstreams;
struct upstreams_change;
struct workers;

/* A reload under way; used by the control loop only, except `under_way` and `given_up`. */
struct server_change {
    struct server_reload reload;
    struct task begin;
    struct task give_up;
    atomic_bool under_way;
    atomic_bool given_up;
    bool waits;          /* the reload waits for new names, or first checks */
    unsigned n_prepared; /* steps of server/server_reload.c done so far */
    struct resize resize;
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
    struct upstreams_change *first_upstreams; /* from server_create() to server_start() */
    struct upstream_next *next;
    struct proxy_loop *proxy_loop;
    struct resolver *resolver;
    struct checks *checks;
    struct certificates *certificates;
    struct checks_change *first_checks; /* as first_upstreams; NULL: no health checks */
    struct spares *spares;
    struct carry_over *carry_over;
    struct listeners *listeners;
    bool started;
    int64_t started_at_s; /* Unix time of server_start() */
    atomic_bool draining;
    atomic_uint sessions;
    struct connection_limit room;
    struct overload *overload;            /* NULL: no limits */
    struct descriptor_budget descriptors; /* see note: descriptors in server/descriptors.h */
    struct descriptors_aside aside;
    struct log_limit refused_limit;
    struct server_change change;
    struct list pauses;      /* changed by the control loop, or main before start */
    struct lock pauses_lock; /* taken to change `pauses`, and by other threads to read it */
    struct task pauses_start;
    atomic_uint n_pauses;
    atomic_uint admin_io_ratio; /* see server/server_admin; 0: as configured */
    /*
     * note: holds. Number of open sessions and listen sockets, plus one until the drain or stop
     * begins; at 0 the server is drained.
     */
    struct ref holds;
};

/*
 * server_client_descriptors(conf):
 * Descriptors that a client of any listener of ${conf} needs at most.
 */
unsigned server_client_descriptors(const struct server_conf *conf);

/*
 * server_aside(sv, conf, next):
 * Count the descriptors that ${conf} needs besides those of sessions; ${next}: its upstreams.
 *
 * Thread: control loop, or main before start
 */
struct descriptors_aside server_aside(const struct server *sv, const struct server_conf *conf,
                                      const struct upstream_next *next);

/*
 * server_create_carry_over(sv):
 * Create what moves sessions to new generations of listeners.
 *
 * Thread: main, before start
 * Errors: 0; -ENOMEM
 */
int server_create_carry_over(struct server *sv) NODISCARD;

/* Longest wait for new host names, at start and in a reload; at start also for the first checks. */
#define SERVER_WAIT_NS (3 * NS_PER_S)

#endif
