/*
 * upstream/membership: the server set of an upstream, changed at run time by name resolution.
 *
 *   line (configuration) -- places (its addresses now) -- servers
 *
 * A line (upstream/server_line) is one server forever, or a name with a server for each address or
 * SRV record. Readers load an atomic pointer to an immutable set of all servers and their balancer;
 * a change publishes a new set.
 *
 * A server is identified by line and addresses. A removed server is ENDPOINT_ABSENT and in no set;
 * if its addresses come back, it returns with sessions and state. It is freed when it has no
 * sessions and no references, and no worker can see a set with it (engine/grace).
 */
#ifndef UPSTREAM_MEMBERSHIP_H
#define UPSTREAM_MEMBERSHIP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "balance/upstream_server.h"
#include "base/ref.h"
#include "base/list.h"
#include "base/must.h"
#include "engine/lock.h"

struct loop_group;
struct server_line;
struct upstream;

struct membership_place {
    const struct address *list; /* in the order to try */
    unsigned n;
    unsigned weight;
    unsigned level;
};

struct server_set {
    struct list link;      /* in membership.replaced */
    uint64_t number;       /* sets are numbered in the order in which they are published */
    atomic_bool unseen;    /* no worker can see the set any more */
    struct ref references; /* one is the membership's */
    struct balancer *balancer;
    unsigned n_used;
    unsigned n;
    struct upstream_server *servers[]; /* by line, then by name */
};

/* Callbacks for changed servers, on the control loop. */
struct membership_watch {
    void (*came)(void *cookie, struct upstream_server *server);
    void (*went)(void *cookie, struct upstream_server *server);
    void (*moved)(void *cookie, struct upstream_server *server); /* addresses changed */
    /* The server's line was replaced (drop pointers into the old one), or its `admin` changed. */
    void (*changed)(void *cookie, struct upstream_server *server);
    void *cookie;
};

struct membership {
    struct upstream *upstream;
    _Atomic(struct server_set *) set; /* see note: grace in engine/grace.h */
    /*
     * note: owner. The members below belong to the control loop; before start, to the main thread.
     * A thread without loop takes the lock to load the set and hold it, and to read a
     * line's `admin`.
     */
    struct lock lock;
    struct server_line **lines; /* in the order of the configuration; references */
    unsigned n_lines;
    struct list servers;  /* all servers, also outside the set */
    struct list slabs;    /* of load words */
    struct list replaced; /* in order of their numbers */
    uint64_t n_published;
    uint32_t generation;   /* of the newest balancer */
    bool is_being_changed; /* see membership_change_prepare() */
    bool is_stale;         /* weights or levels differ from the balancer's */
    struct membership_watch watch;
};

/*
 * membership_open(r, up):
 * Create the first set, of the one-server lines.
 *
 * Thread: as upstream_create()
 * Owns:   ${up} must outlive ${r}; the caller calls membership_close(), after an error too
 * Errors: 0; -ENOMEM
 */
int membership_open(struct membership *r, struct upstream *up) NODISCARD;

/* membership_close(r): free all sets and servers. Thread: as upstream_destroy() */
void membership_close(struct membership *r);

/*
 * membership_now(r):
 * Return the current set, valid within the task.
 *
 * Thread: a worker's loop, or control loop
 */
static inline struct server_set *membership_now(const struct membership *r)
{
    return atomic_load(&r->set);
}

/*
 * membership_hold_set(r) / membership_release_set(set):
 * Add a reference to the current set and return it / release one.
 *
 * Owns:   the servers live until membership_release_set()
 */
struct server_set *membership_hold_set(struct membership *r);
void membership_release_set(struct server_set *set);

/*
 * membership_find_line(r, id):
 * Find the line with this ID; NULL: none.
 *
 * Thread: control loop, or main before start
 * Owns:   valid until the next commit; server_line_hold() keeps it longer
 */
struct server_line *membership_find_line(const struct membership *r, const char *id);

/*
 * membership_update(r, line, places, n, kept):
 * Replace the servers of ${line}, a line of several servers, by servers at ${n} distinct places,
 * perhaps none. If ${kept} is not NULL, servers go only when the new ones have a first result of
 * their checks: ${kept} becomes true if some stay for that; call again then.
 *
 * Thread: control loop
 * Owns:   ${places} are copied
 * Errors: 0 (no change); 1 (changed); -ENOMEM; -E2BIG (over BALANCER_MAX_ENDPOINTS); -ESTALE
 *         (${line} is no longer configured); -EBUSY (another configuration is prepared). Errors
 *         change no set
 */
int membership_update(struct membership *r, const struct server_line *line,
                      const struct membership_place *places, unsigned n, bool *kept) NODISCARD;

/*
 * membership_sweep(r):
 * Free unreachable sets and servers. True if some cannot be freed yet.
 *
 * Thread: control loop
 */
bool membership_sweep(struct membership *r);

/*
 * membership_count_up(m, n_used):
 * Return how many of the *${n_used} servers that may get sessions are up.
 *
 * Thread: control loop, or main before start
 */
unsigned membership_count_up(const struct membership *m, unsigned *n_used);

#endif
