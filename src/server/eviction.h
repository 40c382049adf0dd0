/*
 * server/eviction: ends the sessions at a server that is down, slowly: their clients reconnect to
 * other servers.
 */
#ifndef SERVER_EVICTION_H
#define SERVER_EVICTION_H

#include <stdint.h>

#include "base/must.h"

struct loop_group;
struct upstream_server;
struct worker;

/* A worker's interval; longer if one session each exceeds the rate. */
#define EVICTION_TICK_NS INT64_C(10000000)

struct eviction_conf {
    struct loop_group *loops;
    struct worker **workers;
    struct upstream_server *server;
    unsigned rate; /* sessions per second of all workers; 0: no limit */
};

/*
 * eviction_begin(conf):
 * End the current sessions at ${conf}->server, while it stays down. The eviction frees itself.
 *
 * Thread: control loop
 * Owns:   ${conf} is copied; its pointers are borrowed
 * Errors: 0; -ENOMEM
 */
int eviction_begin(const struct eviction_conf *conf) NODISCARD;

#endif
