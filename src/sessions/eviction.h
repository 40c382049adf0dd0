/*
 * sessions/eviction: ends the sessions of a server that is down, or of a backup that is not in use
 * any more, slowly, because their clients reconnect to other servers.
 */
#ifndef SESSIONS_EVICTION_H
#define SESSIONS_EVICTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"

struct loop_group;
struct upstream_server;
struct worker;

/*
 * Interval at which a worker ends sessions; longer if even one session per worker and interval
 * exceeds `rate`.
 */
#define EVICTION_TICK_NS INT64_C(10000000)

struct eviction_conf {
    struct loop_group *loops;
    struct worker **workers;
    const char *upstream; /* its name, for the log */
    struct upstream_server *server;
    bool of_backup; /* not down: a backup that is not in use any more */
    unsigned rate;  /* sessions per second of all workers; 0: no limit */
};

/*
 * eviction_begin(conf):
 * End the sessions that ${conf}->server has now, as long as it stays down or removed, or out of
 * use. Log how many connections were reset, unless none. The eviction frees itself.
 *
 * Thread: control loop
 * Owns:   ${conf} is copied; its loops and workers must outlive the eviction, which holds the
 *         server
 * Errors: 0; -ENOMEM
 */
int eviction_begin(const struct eviction_conf *conf) NODISCARD;

#endif
