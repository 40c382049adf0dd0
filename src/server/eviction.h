/*
 * server/eviction: ending the sessions at a server that is down, a few at a time, wherever they
 * are.
 *
 * Each worker goes through its own sessions, so that nobody else touches them. All at once would
 * send every client back in the same moment, to the servers that are left.
 */
#ifndef SERVER_EVICTION_H
#define SERVER_EVICTION_H

#include <stdint.h>

#include "base/must.h"

struct loop_group;
struct upstream_server;
struct worker;

/* About how often each worker ends some; less often if one at a time were too many. */
#define EVICTION_TICK_NS INT64_C(10000000)

struct eviction_conf {
    struct loop_group *loops; /* of the workers */
    struct worker **workers;
    struct upstream_server *server;
    unsigned rate; /* sessions a second, of all workers together; 0: all at once */
};

/*
 * eviction_begin(conf):
 * End the sessions that are at ${conf}->server now, as long as it is down. It goes on by itself and
 * frees itself.
 *
 * Thread: control loop
 * Owns:   ${conf} is copied; what it points at is borrowed until the workers have ended
 * Errors: 0; -ENOMEM
 */
int eviction_begin(const struct eviction_conf *conf) NODISCARD;

#endif
