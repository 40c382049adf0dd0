/*
 * server/server: bosses, workers, upstreams and listeners, from start to end.
 *
 * Life: create (binds, no thread yet) -> start -> drain -> stop -> destroy.
 */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "listen/socket_store.h"

struct access_log;
struct loop;
struct resize;
struct server;
struct server_conf;
struct service;
struct task;

struct server_events {
    /*
     * Called once, on any thread, after server_drain(), server_upgrade_leave() or server_stop():
     * the last session has ended, and all listen sockets have stopped.
     */
    void (*drained)(void *cookie);
    void *cookie;
    /*
     * For server_create(): returns the log at ${where} (listener_access_log_conf.where), NULL for
     * "off". A NULL function: no access logs.
     */
    struct access_log *(*access_log)(void *access_cookie, const char *where);
    void *access_cookie;
    struct socket_store sockets;
};

/*
 * server_create(out, conf, events):
 * Bind and listen on every address, build loops and upstreams. Failures are logged.
 *
 * Thread: main
 * Owns:   ${conf} must live until a reload replaces it, or server_destroy(); ${events} is copied
 * Errors: 0; -errno of the first failure
 */
int server_create(struct server **out, const struct server_conf *conf,
                  const struct server_events *events) NODISCARD;

/*
 * server_start_worker(sv):
 * Start the thread of one worker, so that a server that could serve no client fails at its start.
 * The others start with their first clients.
 *
 * Thread: main, before server_start()
 * Errors: 0; -EAGAIN (logged; call server_stop())
 */
int server_start_worker(struct server *sv) NODISCARD;

/*
 * server_start(sv):
 * Resolve names (3 s at most), wait for first checks (3 s at most), then accept.
 *
 * Thread: main
 * Errors: 0; -EAGAIN (no thread could be started); as resolver_start(), checks_start(),
 *         overload_start()
 */
int server_start(struct server *sv) NODISCARD;

/* A server that an administrator adds or removes. */
struct server_edit {
    const char *upstream, *server; /* `server`: ID of the server line */
    bool is_added;
    /* Set when it is done. */
    unsigned n_up, n_used; /* servers of the upstream that are up, of those that get clients */
    unsigned n_sessions;   /* of removed servers of that ID, which go on */
};

struct server_reload {
    const struct server_conf *conf;
    /* As server_events.access_log, for ${conf}. On the control loop. */
    struct access_log *(*access_log)(void *access_cookie, const char *where);
    void *access_cookie;
    int64_t drain_timeout_ns;  /* time for sessions of removed listeners; 0: no limit */
    char *why;                 /* as listeners_sources.why, valid until done() */
    struct server_edit *edits; /* of server_edit(), valid until done() */
    unsigned n_edits;
    unsigned workers;      /* of server_resize(); 0: as configured */
    bool is_by_load;       /* the load asks for them: that of each now, */
    unsigned load_percent; /* in the last `load_over_ns` */
    int64_t load_over_ns;
    /*
     * Called on the control loop at the end of the reload, unless the server is stopped before.
     * ${rc}: 0; or, if nothing was changed, -ECANCELED (given up), -ESHUTDOWN, or the error that
     * was logged.
     */
    void (*done)(void *cookie, int rc);
    void *cookie;
};

/*
 * server_reload(sv, reload):
 * Change the configuration of ${sv} while clients are served. One reload at a time. Until done()
 * only server_watch(), server_reload_give_up() and functions for any thread may be called.
 *
 * Thread: main, after server_start()
 * Owns:   ${reload} is copied; its conf must live as that of server_create(), or until done()
 *         reports an error
 * Errors: as loop_submit()
 */
int server_reload(struct server *sv, const struct server_reload *reload) NODISCARD;

/*
 * server_edit(sv, edit):
 * As server_reload(), but its conf differs from the one in use only in servers of upstreams; other
 * upstreams have the same upstream_conf.memory. A new server that starts down gets no clients until
 * its checks pass; the edit does not wait for them.
 *
 * Thread: main, after server_start()
 * Owns, Errors: as server_reload(); done() may also get -ENODATA, -E2BIG
 */
int server_edit(struct server *sv, const struct server_reload *edit) NODISCARD;

/*
 * server_resize(sv, resize) / server_scale(sv, resize):
 * As server_reload(), but only the number of workers changes: its conf is the one in use. Without
 * `is_by_load` the number is an administrator's: it stays until reset, or until a reload has
 * another `threads` / fill in what the load of the workers asks for (threads = auto); false:
 * nothing.
 *
 * Thread: main, after server_start(), while no change is under way
 * Errors: as server_reload(); done() may also get -ENOMEM, -EMFILE, -ENFILE
 */
int server_resize(struct server *sv, const struct server_reload *resize) NODISCARD;
bool server_scale(struct server *sv, struct server_reload *resize) NODISCARD;

/*
 * server_reload_give_up(sv):
 * Cancel the reload or edit under way, unless its commit has begun; done() follows.
 *
 * Thread: main
 */
void server_reload_give_up(struct server *sv);

/* server_submit_slow(sv, t): submit ${t} to the executor, as executor_submit(). */
int server_submit_slow(struct server *sv, struct task *t) NODISCARD;

/*
 * server_prepare_threads(sv, boss, workers, change):
 * Prepare new numbers of boss and worker threads, as resize_prepare().
 *
 * Thread: control loop
 */
int server_prepare_threads(struct server *sv, unsigned boss, unsigned workers,
                           struct resize *change) NODISCARD;

/*
 * server_add_loop(sv, loop):
 * Add a loop of a layer above: server_watch() watches it, and its figures are shown with others.
 *
 * Thread: main, before server_start()
 * Owns:   ${loop} must outlive the last server_watch()
 */
void server_add_loop(struct server *sv, struct loop *loop);

/*
 * server_drain(sv):
 * Close the listen sockets and let sessions finish; events->drained() follows. Idempotent.
 *
 * Thread: main
 */
void server_drain(struct server *sv);

/*
 * server_stop(sv, cut):
 * Reset the remaining sessions, count them in ${cut}, and join all threads. A hanging thread is
 * logged: then do not destroy ${sv}.
 *
 * Thread: main
 * Errors: 0; -ETIMEDOUT (a loop hangs); -EBUSY (only an executor task hangs, such as a lookup)
 */
int server_stop(struct server *sv, unsigned *cut) NODISCARD;

/*
 * server_watch(sv) / server_watch_interval_ns(sv) / server_doze(sv) / server_watch_fd(sv):
 * Log begin and end of stalls of loops; true if no loop is stalled / interval at which to call
 * server_watch() / true: no loop has run for some intervals, so call server_watch() only after this
 * descriptor was readable.
 *
 * Thread: main
 */
bool server_watch(struct server *sv);
int64_t server_watch_interval_ns(const struct server *sv);
bool server_doze(struct server *sv);
int server_watch_fd(const struct server *sv);

/*
 * server_enter(sv, service) / server_left(sv, service):
 * Count a session of ${service}, from another process, in / out again, as at its end.
 *
 * Errors: 0; -EMFILE (no descriptors are left)
 */
int server_enter(struct server *sv, const struct service *service) NODISCARD;
void server_left(struct server *sv, const struct service *service);

/* server_hold(sv) / server_unhold(sv): keep ${sv} from being drained / not any more. */
void server_hold(struct server *sv);
void server_unhold(struct server *sv);

/* server_sessions(sv): number of open sessions. */
unsigned server_sessions(const struct server *sv);

/* server_destroy(sv): free ${sv}, stopped or never started; NULL is allowed. Thread: main */
void server_destroy(struct server *sv);

#endif
