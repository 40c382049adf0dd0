/*
 * upstream/balancer: load balancing: pick an endpoint for a session and its retries.
 *
 * A balancer is immutable: a change of the group's endpoints makes a new one. A pick reads the
 * endpoints' current flags and session counts. It takes no lock, makes no system call and allocates
 * nothing. Endpoints of weight 0 are left out: they are never picked, own no key, and count neither
 * as present nor as fit.
 *
 *   balancer_pick -> the kind's choice -> fit, not tried, not full? -> yes: entered
 *                              ^------ next choice ------- no
 *
 * Endpoints have priority levels. A higher level is used only when no fit, untried endpoint is left
 * in the lower ones; full endpoints are no reason to go on. Three cases differ:
 *   - Too few of the lowest level are fit (panic_threshold): fit endpoints of the next levels share
 *     its sessions by weight, as many levels as needed. With no fit endpoint in the lowest level,
 *     the higher levels take over; that is no panic.
 *   - Panic: all levels together have too few fit endpoints. All flags but ABSENT are ignored,
 *     since the few that are left would be overloaded and fail too.
 *   - Endpoints that are only ejected (ENDPOINT_EJECTED) are the last resort.
 *
 * Slow start: an endpoint that warms up gets a tenth of its share at first, growing to all of it.
 * Kinds that compare loads reduce its weight; the others accept it with that probability and
 * otherwise pass it over. When only warming endpoints are left they count as normal. Hashing kinds
 * draw by the key, so that a client that was sent there stays there.
 */
#ifndef UPSTREAM_BALANCER_H
#define UPSTREAM_BALANCER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "upstream/endpoint.h"

#define BALANCER_MAX_WEIGHT    256
#define BALANCER_MAX_ENDPOINTS 65535

/* Endpoints tried for one session, at most. */
#define BALANCER_TRIES 16

/* Number of levels, counted from 0. */
#define BALANCER_LEVELS 8

enum balancer_kind {
    BALANCER_ROUND_ROBIN,       /* smooth weighted round robin */
    BALANCER_LEAST_CONNECTIONS, /* fewest sessions per weight; equals in turn */
    BALANCER_RANDOM,            /* the less loaded of two that are drawn by weight */
    BALANCER_SOURCE_HASH,       /* client address, rendezvous hashing */
    BALANCER_MAGLEV,            /* the same by a lookup table of slots */
    BALANCER_FIRST              /* the first that is not full */
};

struct balancer;

struct balancer_conf {
    enum balancer_kind kind;
    struct endpoint *const *endpoints; /* of one group, in configuration order; copied */
    unsigned n_endpoints;
    unsigned hash_balance_factor; /* SOURCE_HASH, MAGLEV: limit, percent of fair share; 0: none */
    unsigned panic_threshold;     /* percent of the lowest level that must be fit; 0: never panic */
    int64_t slow_start_ns;        /* duration of ENDPOINT_WARMING */
    uint32_t generation;          /* unique among the group's balancers */
};

/* Endpoints that one session has tried. */
struct balancer_pick_state {
    uint64_t key;
    uint32_t generation; /* balancer that `tried` refers to; another one discards it */
    uint16_t n_tried;
    uint16_t tried[BALANCER_TRIES]; /* places, see balancer_internal.h */
};

/*
 * balancer_create(out, conf):
 * Create a balancer and its tables. An empty set of endpoints is allowed, and so are unused levels.
 *
 * Thread: any
 * Owns:   the caller owns ${out}; the endpoints are borrowed and must outlive it
 * Errors: 0; -EINVAL (over BALANCER_MAX_ENDPOINTS or BALANCER_MAX_WEIGHT, or a bad level); -ENOMEM
 * Source: nginx, ngx_http_upstream_round_robin (smooth weighted round-robin); Thaler and
 *         Ravishankar, "Using name-based mappings to increase hit rates" (1998), and Schindelhauer
 *         and Schomaker, "Weighted distributed hash tables" (2005), both rendezvous hashing;
 *         Eisenbud et al., "Maglev" (NSDI 2016) 3.4; Mirrokni et al., "Consistent Hashing with
 *         Bounded Loads" (2017); Mitzenmacher, "The Power of Two Choices" (2001)
 */
int balancer_create(struct balancer **out, const struct balancer_conf *conf) NODISCARD;

/*
 * balancer_destroy(b):
 * Free it; NULL is allowed.
 *
 * Thread: any, after the last pick
 */
void balancer_destroy(struct balancer *b);

/*
 * balancer_begin(walk, key):
 * Start the pick state of a session; ${key} is the hash of the client's address.
 *
 * Thread: any
 */
void balancer_begin(struct balancer_pick_state *walk, uint64_t key);

/*
 * balancer_pick(b, walk, out):
 * Pick an endpoint that the session of ${walk} has not tried, enter it (endpoint_enter()) and
 * record it as tried.
 *
 * Thread: any
 * Owns:   the caller calls endpoint_leave() when the session there has ended
 * Errors: 0; -EBUSY (all usable untried endpoints are full); -ENOENT (no usable endpoint is
 *         untried, or BALANCER_TRIES were tried)
 */
int balancer_pick(struct balancer *b, struct balancer_pick_state *walk,
                  struct endpoint **out) NODISCARD;

/*
 * balancer_panics(b):
 * True while too few endpoints are fit.
 *
 * Thread: any
 */
bool balancer_panics(const struct balancer *b);

#endif
