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

#include "admin/admin_ops.h"
#include "base/must.h"

struct address;
struct admin;
struct admin_conf;
struct server;
struct socket_store;

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
 * admin_start_thread(a):
 * Start the thread, so that a process that could answer no request fails at its start, and an
 * upgrade to it fails.
 *
 * Thread: main, before admin_start()
 * Errors: 0; -EAGAIN (logged; call admin_stop())
 */
int admin_start_thread(struct admin *a) NODISCARD;

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
