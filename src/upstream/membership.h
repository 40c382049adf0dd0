/*
 * upstream/membership: the server set of an upstream, changed at run time by name resolution.
 *
 * A line with an address is one server for good. A host name or SRV name is one server for each
 * address or record, which change while sessions run. Readers load one atomic pointer to an
 * immutable set with its own balancer; a change publishes a new set.
 *
 *   line (configuration) -- places (its addresses now) -- servers
 *   set: all servers of all lines, and a balancer
 *
 * A server is identified by its line and addresses. While these are found, or found again before it
 * is freed, it keeps its sessions and state. Otherwise it is ENDPOINT_ABSENT and in no set. It is
 * freed when its sessions and holds (membership_hold()) have ended and workers can no longer see a
 * set that contains it (engine/grace).
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

/* Description of a server of a line. */
struct membership_place {
    const struct address *list; /* in order of preference */
    unsigned n;
    unsigned weight;
    unsigned level;
};

/* Current servers; immutable. */
struct server_set {
    struct list link;   /* replaced sets */
    atomic_bool unseen; /* no worker can see it */
    atomic_uint held;   /* number of membership_take() */
    struct balancer *balancer;
    unsigned n_used; /* servers with a weight */
    unsigned n;
    struct upstream_server *servers[]; /* by line, then by name */
};

/* Observer of changes; called on the control loop. */
struct membership_watch {
    void (*came)(void *cookie, struct upstream_server *server);
    void (*went)(void *cookie, struct upstream_server *server);
    void (*moved)(void *cookie,
                  struct upstream_server *server); /* its addresses or their order changed */
    void *cookie;
};

struct membership {
    struct upstream *upstream;
    _Atomic(struct server_set *) set; /* see note: grace in engine/grace.h */
    /*
     * note: owner. The members below belong to the control loop, before start to the main thread.
     * The lock serves threads unknown to engine/grace: it makes loading the set and counting in
     * `held` one step.
     */
    struct lock lock;
    struct list servers; /* all, including those in no set */
    struct list slabs;   /* of load words */
    struct list replaced;
    uint32_t generation; /* of the newest balancer */
    bool is_stale;       /* weights or levels changed since the last set */
    struct membership_watch watch;
};

/*
 * membership_open(r, up):
 * Create the first set: the servers with known addresses and the one-server names.
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
 * The current set, valid until the task ends.
 *
 * Thread: worker loop or control loop, within one task
 */
static inline struct server_set *membership_now(const struct membership *r)
{
    return atomic_load(&r->set);
}

/*
 * membership_take(r) / membership_give_back(set):
 * Take the current set, for threads that are no loop; release it.
 *
 * Thread: any
 * Owns:   the caller calls membership_give_back(); the servers live until then
 */
struct server_set *membership_take(struct membership *r);
void membership_give_back(struct server_set *set);

/*
 * membership_update(r, line, places, n):
 * Replace the servers of ${line}, a line of several servers, by those at ${n} > 0 distinct places.
 *
 * Thread: control loop
 * Owns:   ${places} are copied
 * Errors: 0 (no change); 1 (servers or weights changed); after an error nothing changed: -ENOMEM;
 *         -E2BIG (over BALANCER_MAX_ENDPOINTS in the group)
 */
int membership_update(struct membership *r, unsigned line, const struct membership_place *places,
                      unsigned n) NODISCARD;

/*
 * membership_hold(server) / membership_let_go(server):
 * Reference a server across tasks without a session there; release it.
 *
 * Thread: as membership_now(), where the server was found; any
 */
void membership_hold(struct upstream_server *server);
void membership_let_go(struct upstream_server *server);

/*
 * membership_sweep(r):
 * Free unreachable sets and servers, as membership_update() also does.
 *
 * Thread: control loop
 */
void membership_sweep(struct membership *r);

#endif
