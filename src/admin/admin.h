/*
 * admin/admin: the admin interface: HTTP and JSON, on a loop of its own.
 *
 * Life: create (binds, no thread) -> start -> [leave] -> stop -> destroy. All functions except
 * admin_action_done() accept NULL: no admin interface is configured.
 *
 * Handlers run on the admin loop and never block. Reloads and upgrades, which only the main thread
 * may do, go to that thread as an admin_action and come back as a task.
 */
#ifndef ADMIN_ADMIN_H
#define ADMIN_ADMIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "engine/task.h"

struct address;
struct admin;
struct admin_conf;
struct admin_request;
struct figure_visitor;
struct server;
struct socket_store;

enum admin_state { ADMIN_SERVING, ADMIN_DRAINING };

enum admin_action_kind {
    ADMIN_RELOAD,
    ADMIN_CONFIRM,
    ADMIN_REVERT,
    ADMIN_UPGRADE,
    ADMIN_DUMP_CONFIG
};

#define ADMIN_CONFIRM_AS_CONFIGURED (-1) /* confirm_ns: as reload_confirm says */

/* A request to the main thread. */
struct admin_action {
    struct task task;          /* submitted by admin_action_done() */
    struct admin_action *next; /* link in the daemon's mailbox */
    struct admin_request *request;
    enum admin_action_kind kind;
    bool dry_run;       /* RELOAD: only check */
    int64_t confirm_ns; /* RELOAD: time to confirm; 0: no confirmation needed */
    /* The answer. */
    bool done;
    bool stopping;   /* not carried out, because the process ends */
    char error[256]; /* if not done, the reason */
    char *text;      /* messages, changes or the configuration; NULL: no text */
};

/* State of the process, for /v1/status. */
struct admin_status {
    const char *config_path;
    const char *reload; /* "idle", "applying" or "unconfirmed" */
    unsigned reloads, reloads_failed, reloads_reverted;
    int64_t confirm_by_ns; /* CLOCK_NEVER: nothing to confirm */
    unsigned old_processes;
};

/* Implemented by the daemon. */
struct admin_ops {
    /* On the admin loop: pass ${action} to the main thread, which calls admin_action_done(). */
    void (*submit)(void *cookie, struct admin_action *action);
    /* On the admin loop: fill in ${out}, without waiting for the main thread. */
    void (*status)(void *cookie, struct admin_status *out);
    /* On the admin loop: visit the figures of access logs. */
    void (*figures)(void *cookie, struct figure_visitor *v);
    void *cookie;
};

struct admin_env {
    struct server *server;
    const struct socket_store *sockets;
    struct admin_ops ops;
};

/*
 * admin_create(out, conf, env):
 * Bind the addresses; failures to bind are logged. ${out} is NULL if ${conf} has no address.
 *
 * Thread: main, before any other thread
 * Owns:   copies ${conf} and ${env}; what ${env} points at must outlive the interface
 * Errors: 0; -errno of the first failure
 */
int admin_create(struct admin **out, const struct admin_conf *conf,
                 const struct admin_env *env) NODISCARD;

/*
 * admin_start(a):
 * Take over the inherited sockets, and accept clients.
 *
 * Thread: main, after server_start()
 * Errors: as loop_submit()
 */
int admin_start(struct admin *a) NODISCARD;

/*
 * admin_configure(a, conf):
 * Use the token, limits and `write` of ${conf} from the next request on.
 *
 * Thread: main
 */
void admin_configure(struct admin *a, const struct admin_conf *conf);

/* admin_set_state(a, state): set the state that /readyz and /v1/status show. Thread: main */
void admin_set_state(struct admin *a, enum admin_state state);

/*
 * admin_leave(a):
 * Leave the sockets and their files to the process that replaces this one; answer the requests
 * under way.
 *
 * Thread: main
 */
void admin_leave(struct admin *a);

/*
 * admin_descriptor(a, i, address):
 * Return the listening descriptor ${i} and its address; -1: no such descriptor.
 *
 * Thread: main
 * Owns:   ${a} keeps the descriptor
 */
int admin_descriptor(const struct admin *a, unsigned i, const struct address **address);

/*
 * admin_action_done(a, action):
 * Hand ${action}, with its answer, back to the admin loop.
 *
 * Thread: main
 */
void admin_action_done(struct admin *a, struct admin_action *action);

/*
 * admin_stop(a):
 * Close idle connections at once, the others after at most half a second; then end the loop. Call
 * this when all actions were returned and the server's threads have ended.
 *
 * Thread: main
 * Errors: 0; -ETIMEDOUT (the loop hangs: do not destroy ${a})
 */
int admin_stop(struct admin *a) NODISCARD;

/* admin_destroy(a): free ${a}, stopped or never started. Thread: main */
void admin_destroy(struct admin *a);

#endif
