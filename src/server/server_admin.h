/*
 * server/server_admin: what an administrator changes while the server runs.
 *
 * Changes apply at once. They survive a reload and an upgrade, unless the new configuration changes
 * the same server line or option; reset and a restart forget them.
 */
#ifndef SERVER_SERVER_ADMIN_H
#define SERVER_SERVER_ADMIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "engine/task.h"
#include "server/server_pause.h"
#include "sessions/session_scan.h"
#include "sessions/session_spread.h"
#include "upstream/server_line.h"

struct figure_visitor;
struct loop;
struct rebalance_ask;
struct server;
struct server_workers_conf;

enum server_admin_kind {
    SERVER_ADMIN_STATE,  /* `state` of a server line */
    SERVER_ADMIN_WEIGHT, /* `weight` of a server line */
    SERVER_ADMIN_IO_RATIO,
    SERVER_ADMIN_MAX_CONNECTIONS, /* max_connections of a listener */
    SERVER_ADMIN_PAUSE,
    SERVER_ADMIN_RESUME,
    SERVER_ADMIN_RESET /* forget all changes except pauses */
};

/* A change under way. */
struct server_admin {
    enum server_admin_kind kind;
    const char *upstream, *server; /* `server`: ID of the server line, or ID@ADDRESS */
    enum server_line_state state;
    unsigned weight; /* 0: no new sessions */
    unsigned io_ratio;
    unsigned max_connections;          /* 0: no limit */
    struct server_pause_target target; /* for MAX_CONNECTIONS, PAUSE and RESUME */
    struct server_pause_conf pause;
    unsigned rate; /* RESUME */
    /*
     * Called once on the asking loop, unless that has ended. ${rc}: 0; -ENOENT (no such server or
     * listener); -EINVAL (wrong io_ratio); -ESHUTDOWN; as membership_admin_set(),
     * server_pause_begin(), server_pause_resume().
     */
    void (*answered)(struct server_admin *change, int rc);

    /* Answer: state of the server line now; SERVER_LINE_AS_CONFIGURED means SERVER_LINE_READY. */
    enum server_line_state state_now;
    int weight_now; /* 0: no new sessions; -1: as SRV records say */
    bool is_last;   /* no server of the upstream gets clients now (logged) */

    struct task task;
    struct server *sv;
    struct loop *asker;
    int rc;
};

/*
 * server_admin_begin(sv, change):
 * Apply ${change} on the control loop.
 *
 * Thread: any loop; it is the asking loop
 * Owns:   ${change}, filled in up to `answered`, must live until answered() is called, or the
 *         asking loop has ended
 * Errors: as loop_submit(); then answered() is not called
 */
int server_admin_begin(struct server *sv, struct server_admin *change) NODISCARD;

/*
 * server_admin_set_io_ratio(sv, io_ratio):
 * Use ${io_ratio} instead of the configured one; 0: use the configured one again.
 *
 * Thread: control loop, or main before start
 * Errors: 0; -EINVAL (not 1 to 100)
 */
int server_admin_set_io_ratio(struct server *sv, unsigned io_ratio) NODISCARD;

/*
 * server_admin_io_ratio(sv, configured):
 * Return the io_ratio that server_admin_set_io_ratio() has set, or 0, and the configured one.
 *
 * Thread: control loop, or main while no reload is under way
 */
unsigned server_admin_io_ratio(const struct server *sv, unsigned *configured);

/*
 * server_admin_threads(sv, configured) / server_admin_start_threads(sv, n):
 * Return the number of workers that an administrator has set, or 0, and the configured one / use
 * ${n} workers instead of the configured number, from the start on.
 *
 * Thread: as server_admin_io_ratio() / main, before start
 * Errors: as resize_prepare(), listeners_prepare_acceptors()
 */
unsigned server_admin_threads(const struct server *sv, struct server_workers_conf *configured);
int server_admin_start_threads(struct server *sv, unsigned n) NODISCARD;

/*
 * server_admin_workers(sv):
 * Return the workers, to visit their sessions.
 *
 * Owns:   valid as long as ${sv}
 */
struct session_scan_workers server_admin_workers(const struct server *sv);

/*
 * server_admin_rebalance(sv, ask) / server_admin_rebalance_figures(sv, v):
 * Call rebalance_ask_begin() / rebalance_figures().
 *
 * Errors: as there
 */
int server_admin_rebalance(const struct server *sv, struct rebalance_ask *ask) NODISCARD;
void server_admin_rebalance_figures(const struct server *sv, struct figure_visitor *v);

struct server_scale {
    unsigned set;          /* by an administrator; 0: no number */
    unsigned min, max;     /* limits of `threads = auto`, while it applies; max 0: it does not */
    uint64_t n_up, n_down; /* changes by load */
};

/*
 * server_admin_scale(sv) / server_admin_start_scale(sv, n):
 * What determines the number of workers; not of one instant / where the load determines it, begin
 * with ${n}, which it was in another process, within the limits.
 *
 * Thread: server_admin_start_scale(): main, before start
 * Errors: as server_admin_start_threads()
 */
struct server_scale server_admin_scale(const struct server *sv);
int server_admin_start_scale(struct server *sv, unsigned n) NODISCARD;

/* server_admin_spread(sv): the workers in use, and what sessions do as they come and go. */
struct session_spread_figures server_admin_spread(const struct server *sv);

/*
 * server_admin_has_listener(sv, name) / server_admin_has_server(sv, upstream, server) /
 * server_admin_has_worker(sv, name):
 * Does the listener, server or worker exist? ${server}: name, or ID of the server line; "": ask for
 * the upstream only.
 */
bool server_admin_has_listener(const struct server *sv, const char *name);
bool server_admin_has_server(const struct server *sv, const char *upstream, const char *server);
bool server_admin_has_worker(const struct server *sv, const char *name);

/*
 * server_admin_find_worker(sv, name, out):
 * Find the loop of a worker.
 *
 * Owns:   valid as long as ${sv}
 * Errors: 0; -ENOENT; -ESHUTDOWN (it is parked, see engine/loop_group.h)
 */
int server_admin_find_worker(const struct server *sv, const char *name, struct loop **out);

#endif
