/*
 * daemon/reload: reads the configuration again and applies it while clients are served.
 *
 *   IDLE --reload_begin()--> LOADING (executor) --> APPLYING (control loop) --> IDLE
 *                                  \--refused, nothing is changed--> IDLE
 *
 * A reload that is requested meanwhile follows, once. With `reload_confirm`, the previous
 * configuration is used again unless another SIGHUP, with the same file, confirms the reload in
 * time (RFC 6241, 8.4).
 */
#ifndef DAEMON_RELOAD_H
#define DAEMON_RELOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"

struct access_logs;
struct config;
struct privileges;
struct reload;
struct server;

struct reload_conf {
    const char *path;
    struct server *server;           /* started */
    struct access_logs *access_logs; /* NULL: none */
};

/*
 * reload_create(out, conf, running):
 * Create the state for a server that runs with ${running}.
 *
 * Thread: main
 * Owns:   ${running}; what ${conf} points at is borrowed
 * Errors: 0; -ENOMEM, -EMFILE, -ENFILE
 */
int reload_create(struct reload **out, const struct reload_conf *conf,
                  struct config *running) NODISCARD;

/*
 * reload_running(r):
 * Return the configuration in use.
 *
 * Thread: main
 * Owns:   valid until the next reload_step()
 */
const struct config *reload_running(const struct reload *r);

/*
 * reload_notify_ready(r):
 * Report to systemd that the server accepts, with its number of addresses.
 *
 * Thread: main
 */
void reload_notify_ready(const struct reload *r);

/*
 * reload_begin(r):
 * Begin a reload, now or after the reload under way. Failures are logged.
 *
 * Thread: main
 */
void reload_begin(struct reload *r);

/*
 * reload_fd(r) / reload_step(r):
 * Descriptor that is readable when reload_step() has something to do.
 *
 * Thread: main
 */
int reload_fd(const struct reload *r);
void reload_step(struct reload *r);

/*
 * reload_due_at_ns(r) / reload_look(r):
 * When to call reload_look(), CLOCK_NEVER: not at all; return to the previous configuration if the
 * time to confirm is over.
 *
 * Thread: main
 */
int64_t reload_due_at_ns(const struct reload *r);
void reload_look(struct reload *r);

/*
 * reload_is_open(r):
 * Is a reload under way, or not yet confirmed?
 *
 * Thread: main
 */
bool reload_is_open(const struct reload *r);

/*
 * reload_is_applying(r) / reload_give_up(r):
 * Is the control loop changing the server, so that no other thread may do so? Before the server
 * stops: cancel a reload under way unless it is at its commit, and begin no other.
 *
 * Thread: main
 */
bool reload_is_applying(const struct reload *r);
void reload_give_up(struct reload *r);

/*
 * reload_destroy(r):
 * Free ${r}, or NULL, and return the configuration in use.
 *
 * Thread: main, after the server has stopped
 * Owns:   the caller
 */
struct config *reload_destroy(struct reload *r);

#endif
