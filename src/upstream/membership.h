/*
 * upstream/membership: the servers of an upstream as they come and go.
 *
 * A line of the configuration with an address is one server for good. A host name is as many as it
 * has addresses, or as its SRV records name, and they change while sessions are under way: whoever
 * picks reads one atomic pointer to an immutable set, with a balancer of its own, and a change
 * publishes another set.
 *
 *   line (configuration) -- places (what its name stands for) -- servers      set: all servers of
 *   all lines, and a balancer
 *
 * A server is known by its line and its addresses: it stays the same, with its sessions and what is
 * held against it, as long as they are found, and if they are found again before it is gone. One
 * that is not found any more is ENDPOINT_ABSENT and in no set. It goes when its last session has
 * ended and nobody can find it any more: when workers have let go of every set that had it
 * (engine/grace) and all of membership_hold() was let go.
 */
#ifndef UPSTREAM_MEMBERSHIP_H
#define UPSTREAM_MEMBERSHIP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/must.h"
#include "engine/lock.h"
#include "upstream/upstream_server.h"

struct loop_group;
struct upstream;

/* A server to be: where it is, with what weight and on what level. */
struct membership_place {
    const struct address *list; /* in the order to try */
    unsigned n;
    unsigned weight;
    unsigned level;
};

/* Of the servers as they are now; immutable. */
struct server_set {
    struct list link;   /* among those that were replaced */
    atomic_bool unseen; /* by workers */
    atomic_uint held;   /* by who called membership_take() */
    struct balancer *balancer;
    unsigned n_used; /* servers with a weight */
    unsigned n;
    struct upstream_server
        *servers[]; /* in the order of the lines, those of a line in the order of their names */
};

/* Somebody who has to know what servers there are. On the control loop. */
struct membership_watch {
    void (*came)(void *cookie, struct upstream_server *server);
    void (*went)(void *cookie, struct upstream_server *server);
    void (*moved)(void *cookie,
                  struct upstream_server *server); /* it has other addresses, or its first */
    void *cookie;
};

struct membership {
    struct upstream *upstream;
    _Atomic(struct server_set *) set; /* see note: grace in engine/grace.h */
    /*
     * note: roster. What is below belongs to the control loop, and before that runs to the main
     * thread. The lock is for other threads that are not known to engine/grace: they take the set,
     * and count themselves in, in one step.
     */
    struct lock lock;
    struct list servers; /* all, also those that are in no set any more */
    struct list slabs;   /* of their loads */
    struct list replaced;
    uint32_t generation; /* of the newest balancer */
    bool is_stale;       /* weights or levels have changed, and no set knows */
    struct membership_watch watch;
};

/*
 * membership_open(r, up):
 * The servers whose addresses are known without asking, in a first set.
 *
 * Thread: before start
 * Owns:   ${up} is borrowed; the caller calls membership_close() also after an error
 * Errors: 0; -ENOMEM
 */
int membership_open(struct membership *r, struct upstream *up) NODISCARD;

/*
 * membership_close(r):
 * Free all sets and servers.
 *
 * Thread: after the last reader has ended
 */
void membership_close(struct membership *r);

/*
 * membership_now(r):
 * The set of now.
 *
 * Thread: a loop of the workers or the control loop, within one task
 * Owns:   nothing; as long as the task lasts
 */
static inline struct server_set *membership_now(const struct membership *r)
{
    return atomic_load(&r->set);
}

/*
 * membership_take(r) / membership_give_back(set):
 * The set of now, for who is no worker; it is no longer needed.
 *
 * Thread: any
 * Owns:   the caller calls membership_give_back(); the servers are there until then
 */
struct server_set *membership_take(struct membership *r);
void membership_give_back(struct server_set *set);

/*
 * membership_update(r, line, places, n):
 * The servers of ${line}, an index of a line that can be several, are at these ${n} > 0 places from
 * now on; no two of them at the same.
 *
 * Thread: control loop
 * Owns:   ${places} are copied
 * Errors: 0 (nothing new); 1 (there are other servers now, or the same with other weights);
 *         -ENOMEM; -E2BIG (over BALANCER_MAX_ENDPOINTS in the group). After an error all are where
 *         they were
 */
int membership_update(struct membership *r, unsigned line, const struct membership_place *places,
                      unsigned n) NODISCARD;

/*
 * membership_hold(server) / membership_let_go(server):
 * Whoever keeps a server from task to task, and has no session there, keeps it from going away.
 *
 * Thread: where membership_now() may be called, for a server found there; any
 */
void membership_hold(struct upstream_server *server);
void membership_let_go(struct upstream_server *server);

/*
 * membership_sweep(r):
 * Free what nobody can find any more. membership_update() does it, too.
 *
 * Thread: control loop
 */
void membership_sweep(struct membership *r);

#endif
