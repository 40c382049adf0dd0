/*
 * server/server_pause: pauses of listeners and upstreams: new clients are held, and go on later.
 *
 *   begin -> [resume at a rate -> ticks] -> over: by resume, or after its time
 *
 * The clients of a listener stay in the kernel's queue (`backlog` long); the clients of an upstream
 * are accepted, and wait in the upstream's queue (balance/wait_queue). When a pause is over, all
 * clients go on at once. A release at a rate is over when the last held client has gone on.
 */
#ifndef SERVER_SERVER_PAUSE_H
#define SERVER_SERVER_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"

struct server;
struct server_conf;

/* Name of a paused listener or upstream; the other name is NULL. */
struct server_pause_target {
    const char *listener;
    const char *upstream;
};

struct server_pause_conf {
    unsigned max_held; /* upstreams only: sessions that may wait; further ones are reset */
    int64_t for_ns;
};

struct server_pause_status {
    struct server_pause_target target;
    int64_t until_ns;
    unsigned max_held;
    unsigned rate; /* clients released per second; 0: no release yet */
};

/*
 * server_pause_begin(sv, target, conf):
 * Pause ${target}, or change its pause.
 *
 * Thread: control loop, or main before start
 * Errors: 0; -ENOENT (does not exist); -ENOMEM
 */
int server_pause_begin(struct server *sv, const struct server_pause_target *target,
                       const struct server_pause_conf *conf) NODISCARD;

/*
 * server_pause_resume(sv, target, rate):
 * End the pause, at ${rate} clients per second; 0: at once.
 *
 * Thread: control loop; with a ${rate} also main before start
 * Errors: 0; -ENOENT (does not exist); -EALREADY (is not paused)
 */
int server_pause_resume(struct server *sv, const struct server_pause_target *target,
                        unsigned rate) NODISCARD;

/*
 * server_pause_end_removed(sv, conf):
 * End the pauses of what ${conf} does not have, before its sockets close and drain their queues.
 *
 * Thread: control loop
 */
void server_pause_end_removed(struct server *sv, const struct server_conf *conf);

/*
 * server_pause_start(sv):
 * Start the timers of pauses that began before the server's start.
 *
 * Thread: control loop
 */
void server_pause_start(struct server *sv);

/* server_pause_each(sv, visit, cookie): visit all pauses, under a lock. */
void server_pause_each(struct server *sv,
                       void (*visit)(void *cookie, const struct server_pause_status *pause),
                       void *cookie);

/* server_pause_is_any(sv): is anything paused, or being released? */
bool server_pause_is_any(const struct server *sv);

/* server_pause_free_all(sv): free all pauses. Thread: main, while no loop runs */
void server_pause_free_all(struct server *sv);

#endif
