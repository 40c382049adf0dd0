/*
 * listen/listeners: all listeners of the server, and how a new configuration changes them.
 *
 * A listener of the same name keeps its counters and connection limits. A socket of the same
 * address keeps its queue of clients, even if another listener has the address now. A removed
 * listener closes its sockets at once and is freed after its last session; a later listener of the
 * same name is a new one.
 *
 * If an address needs fewer sockets than before (reuseport), the surplus sockets stay open: closing
 * a socket resets the clients in its queue. They move to loops in use (listen/listeners_place).
 *
 *   prepare (binds) -> commit (accepts) | cancel (closes what was bound)
 */
#ifndef LISTEN_LISTENERS_H
#define LISTEN_LISTENERS_H

#include <stdint.h>
#include <stdio.h>

#include "base/must.h"
#include "listen/listener.h"

struct access_log;
struct connection_limit;
struct counters_report;
struct descriptor_budget;
struct executor;
struct listener_generation;
struct listeners;
struct listeners_change;
struct loop;
struct loop_group;
struct list;
struct session;
struct socket_store;
struct tls_handshakes;
struct upstream;

struct listeners_env {
    struct loop *control;
    struct loop_group *boss;    /* loops that accept; without any in use, those of `workers` do */
    struct loop_group *workers; /* NULL: bosses accept */
    struct executor *executor;
    struct tls_handshakes *handshakes;
    struct connection_limit *connection_limit; /* connection limit of the process */
    struct descriptor_budget *descriptors;     /* counts listen sockets; NULL: not counted */
    const struct socket_store *store;          /* NULL: sockets end with the process */
    /* As acceptor_ops.admit, on a loop that accepts; the session will need ${descriptors}. */
    int64_t (*admit)(void *cookie, unsigned descriptors);
    /* On a loop that accepts; the callee owns ${s}, and calls listener_left() after its end. */
    void (*accepted)(void *cookie, struct session *s);
    /* On the control loop or main, under a lock: a new socket is in use. */
    void (*opened)(void *cookie);
    /* On any thread: a socket announced by opened() was closed. */
    void (*stopped)(void *cookie);
    /* At a commit, with generations that sessions may still use: the callee owns them. */
    void (*replaced)(void *cookie, struct list *generations);
    void *cookie;
};

#define LISTENERS_WHY_BYTES 256

/* The new configuration, and its objects that listeners use. */
struct listeners_sources {
    const struct listener_conf *list;
    unsigned n;
    unsigned accept_batch; /* clients accepted per readiness event */
    unsigned acceptors;    /* workers that accept: each has a socket of each TCP address */
    /* Returns the upstream ${name} of the new configuration. */
    struct upstream *(*upstream)(void *cookie, const char *name);
    /*
     * Returns the log at ${where} (listener_access_log_conf.where), NULL for "off". A NULL
     * function: no access logs.
     */
    struct access_log *(*access_log)(void *cookie, const char *where);
    void *cookie;
    int64_t leave_ns; /* time for the sessions of removed listeners; 0: no limit */
    char *why;        /* LISTENERS_WHY_BYTES for the error that is logged; NULL: only log it */
};

/*
 * listeners_create(out, env):
 * Create an empty set.
 *
 * Thread: main
 * Owns:   ${env} is copied; what it points at must outlive ${out}
 * Errors: 0; -ENOMEM
 */
int listeners_create(struct listeners **out, const struct listeners_env *env) NODISCARD;

/*
 * listeners_prepare(ls, src, out):
 * Create what the listeners of ${src} need, and bind their new addresses. One change at a time. A
 * failure is logged and changes nothing. Waits up to a second for the address of a socket that is
 * still closing.
 *
 * Thread: control loop, or main before start
 * Owns:   ${src} is used during the call only; each generation holds its section's
 *         memory
 * Errors: 0; -ENOMEM; -EMFILE, -ENFILE; -EADDRINUSE (also if an address is configured twice); as
 *         sock_listen()
 */
int listeners_prepare(struct listeners *ls, const struct listeners_sources *src,
                      struct listeners_change **out) NODISCARD;

/*
 * listeners_commit(change) / listeners_cancel(change):
 * Use the new configuration from now on / undo the prepare. New sockets accept at once, or from
 * listeners_start() on. Kept sockets pass to the listener that now has their address.
 * env.replaced() then moves the sessions.
 *
 * Thread: as listeners_prepare()
 * Owns:   ${change} is freed
 */
void listeners_commit(struct listeners_change *change);
void listeners_cancel(struct listeners_change *change);

/*
 * listeners_prepare_acceptors(ls, n) / listeners_commit_acceptors(ls, n) /
 * listeners_cancel_acceptors(ls):
 * ${n} workers will accept: open the sockets that they need / use them, and let the sockets of
 * other loops move / close them again. The numbers of loops in use change before the commit.
 *
 * Thread: as listeners_prepare(), while no other change is under way
 * Errors: 0; -ENOMEM; -EMFILE, -ENFILE; as sock_listen()
 */
int listeners_prepare_acceptors(struct listeners *ls, unsigned n) NODISCARD;
void listeners_commit_acceptors(struct listeners *ls, unsigned n);
void listeners_cancel_acceptors(struct listeners *ls);

/*
 * listeners_start(ls):
 * Begin to accept.
 *
 * Thread: main
 * Errors: as listener_socket_start()
 */
int listeners_start(struct listeners *ls) NODISCARD;

/*
 * listeners_stop(ls):
 * Accept the clients in the kernel's queues and close all sockets, also the sockets of later
 * changes; env->stopped() follows for each. Call it once.
 */
void listeners_stop(struct listeners *ls);

/*
 * listeners_leave(ls):
 * As listeners_stop(), but another process has the sockets too: leave the kernel's queues and the
 * files of unix sockets to that process. May be called again, and before listeners_stop().
 */
void listeners_leave(struct listeners *ls);

/*
 * listeners_keep(ls):
 * This process has replaced another: store the sockets in use, as listeners_commit() does, and own
 * the files of unix sockets that are not stored. Give inherited sockets the configured options, and
 * open further sockets where an address has too few; failures are logged. After listeners_stop() or
 * listeners_leave(), only remove all addresses from the store, and the unix socket files that
 * socket_store.forget() leaves to the caller.
 *
 * Thread: main, while no change is under way
 */
void listeners_keep(struct listeners *ls);

struct listeners_descriptor {
    int fd;
    struct address address;
};

/*
 * listeners_descriptors(ls, out, n):
 * List the listen sockets in use.
 *
 * Thread: any, while no change is under way
 * Owns:   the caller frees ${out}; ${ls} keeps the descriptors
 * Errors: 0; -ENOMEM
 */
int listeners_descriptors(struct listeners *ls, struct listeners_descriptor **out,
                          unsigned *n) NODISCARD;

/* listeners_sockets(ls): number of listen sockets in use. */
unsigned listeners_sockets(struct listeners *ls);

/*
 * listeners_sockets_wanted(ls):
 * As listeners_sockets(), plus the sockets that listeners_start() and listeners_keep() will add.
 */
unsigned listeners_sockets_wanted(struct listeners *ls);

/*
 * listeners_hold_all(ls, n):
 * List the current generations of all listeners, in the order of the configuration.
 *
 * Owns:   the caller releases each of the ${n} generations, and frees the list
 * Errors: NULL (out of memory)
 */
struct listener_generation **listeners_hold_all(struct listeners *ls, unsigned *n);

/* listeners_write_state(ls, f): write each listener's counters, as in handover/server_state. */
void listeners_write_state(struct listeners *ls, FILE *f);

/*
 * listeners_continue(ls, name, report):
 * Continue the counters of the listener ${name}, as counters_set_report(); ${report}->of is 0 if it
 * does not exist.
 *
 * Thread: control loop, or main before start
 */
void listeners_continue(struct listeners *ls, const char *name, struct counters_report *report);

/*
 * listeners_lookup(ls, name):
 * The listener ${name}, or NULL.
 *
 * Owns:   the caller calls listener_release()
 */
struct listener *listeners_lookup(struct listeners *ls, const char *name);

/* listeners_find_address(ls, a): the equal address that sessions may point at; NULL: none. */
const struct address *listeners_find_address(struct listeners *ls, const struct address *a);

/*
 * listeners_set_max(ls, name, max) / listeners_reset_max(ls):
 * Set max_connections of the listener ${name} (0: no limit), until a reload changes that option /
 * use the configured values again. Open sessions stay.
 *
 * Thread: control loop, or main before start
 * Errors: 0; -ENOENT (does not exist)
 */
int listeners_set_max(struct listeners *ls, const char *name, unsigned max) NODISCARD;
void listeners_reset_max(struct listeners *ls);

/* max_connections of a listener, as an administrator set it. */
struct listeners_max {
    const char *name;
    unsigned max, configured;
};

/*
 * listeners_each_max(ls, visit, cookie):
 * Visit the listeners whose max_connections an administrator has set, under a lock.
 *
 * Thread: control loop, or main while no reload is under way
 */
void listeners_each_max(struct listeners *ls,
                        void (*visit)(void *cookie, const struct listeners_max *max), void *cookie);

/*
 * listeners_destroy(ls):
 * Free ${ls} and its sockets; NULL is allowed.
 *
 * Thread: main, while no loop runs and no session is left
 */
void listeners_destroy(struct listeners *ls);

#endif
