/* server/server_conf: configuration of the server; immutable. */
#ifndef SERVER_SERVER_CONF_H
#define SERVER_SERVER_CONF_H

#include <stdint.h>

#include "engine/affinity.h"
#include "engine/chooser.h"
#include "limits/quota.h"
#include "listen/listener.h"
#include "sessions/overload.h"
#include "sessions/rebalance.h"
#include "tls/tls_conf.h"
#include "tls/tls_handshakes.h"

struct upstream_conf;

/* Limits of the numbers of threads. */
#define SERVER_BOSS_MAX    64
#define SERVER_WORKERS_MAX 256

enum server_affinity {
    SERVER_AFFINITY_OFF,
    SERVER_AFFINITY_AUTO, /* thread i on the i-th allowed processor, cyclically */
    SERVER_AFFINITY_LIST  /* thread i on the i-th processor of `list`, cyclically */
};

struct server_cpus {
    enum server_affinity affinity;
    unsigned *list; /* processor numbers */
    unsigned n;
};

struct server_boss_conf {
    unsigned threads;      /* 0: the workers accept */
    unsigned accept_batch; /* clients accepted per readiness event */
    struct server_cpus cpus;
    enum affinity_scheduling scheduling;
};

/* Number of worker threads. */
struct server_workers_conf {
    unsigned n; /* 0: two per processor, or fewer under a CPU quota */
    /* As load demands (server/autoscale_plan). `min` 0: `n`. `max` 0: as many as for `n` = 0. */
    unsigned min, max;
};

struct server_worker_conf {
    struct server_workers_conf threads;
    unsigned io_ratio; /* percent of a turn for I/O, or BUDGET_RATIO_AUTO */
    int64_t queue_wait_goal_ns;
    int64_t task_quantum_ns; /* time for tasks in a turn */
    unsigned max_pending_tasks;
    enum chooser_kind chooser;
    /* epoll is rebuilt after so many early, empty polls in a row; 0: never */
    unsigned rebuild_threshold;
    int64_t stall_threshold_ns; /* turns at least this long count as stalls; 0: no turn does */
    struct server_cpus cpus;
    struct rebalance_conf rebalance;
};

struct server_executor_conf {
    unsigned threads;
    unsigned lookup_threads;
    unsigned max_pending_tasks;
};

/* One generation of configuration; immutable. */
struct server_conf {
    struct server_boss_conf boss;
    struct server_worker_conf worker;
    struct server_executor_conf executor;
    struct tls_handshakes_conf handshake; /* `threads` may be TLS_HANDSHAKES_AUTO */
    struct listener_conf *listeners;
    unsigned n_listeners;
    struct upstream_conf *upstreams;
    unsigned n_upstreams;
    struct tls_conf *tls; /* [tls NAME] */
    unsigned n_tls;
    struct name_servers_conf *resolvers; /* [resolver NAME] */
    unsigned n_resolvers;
    struct listener_log_conf *access_logs; /* [access_log NAME] */
    unsigned n_access_logs;
    struct quota_conf quota; /* limits of all listeners together */
    struct overload_conf overload;
    unsigned set_aside; /* descriptors reserved for the layers above */
};

#endif
