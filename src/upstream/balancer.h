/*
 * upstream/balancer: load balancing: pick an endpoint for a session and its retries.
 *
 * Immutable; a change of endpoints makes a new one. Picks read the endpoints' current flags and
 * counts, without lock or allocation. Endpoints of weight 0 are left out.
 *
 * Levels: a higher one is used only when all fit endpoints below were tried; full is no reason.
 *   - When too few of the lowest level are fit (panic_threshold), higher levels share its sessions
 *     by weight, or take over if none is fit.
 *   - Panic: all levels together have too few. Flags but ABSENT are ignored, not to overload the
 *     few that are fit.
 *   - Endpoints that are only ejected are the last resort.
 *
 * Slow start: an endpoint's share grows from a tenth to all. Kinds that compare loads reduce its
 * weight; others accept it with that probability, hashing kinds by the key, so that clients stay.
 * If only warming endpoints are left, they count fully.
 */
#ifndef UPSTREAM_BALANCER_H
#define UPSTREAM_BALANCER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "upstream/endpoint.h"

#define BALANCER_MAX_WEIGHT    256
#define BALANCER_MAX_ENDPOINTS 65535

/* Endpoints tried for a session. */
#define BALANCER_TRIES 16

#define BALANCER_LEVELS 8

enum balancer_kind {
    BALANCER_ROUND_ROBIN,       /* smooth weighted round robin */
    BALANCER_LEAST_CONNECTIONS, /* fewest sessions per weight */
    BALANCER_RANDOM,            /* the less loaded of two that are drawn by weight */
    BALANCER_SOURCE_HASH,       /* client address, rendezvous hashing */
    BALANCER_MAGLEV,            /* the same with a lookup table */
    BALANCER_FIRST              /* the first that is not full */
};

struct balancer;

struct balancer_conf {
    enum balancer_kind kind;
    struct endpoint *const *endpoints; /* of one group, in configuration order; copied */
    unsigned n_endpoints;
    unsigned hash_balance_factor; /* for hashing: limit, percent of fair share; 0: none */
    unsigned panic_threshold;     /* percent of the lowest level that must be fit; 0: never panic */
    int64_t slow_start_ns;        /* duration of ENDPOINT_WARMING */
    uint32_t generation;          /* unique in the group */
};

struct balancer_pick_state {
    uint64_t key;
    uint32_t generation; /* balancer whose places are in `tried` */
    uint16_t n_tried;
    uint16_t tried[BALANCER_TRIES]; /* see balancer_internal.h */
};

/*
 * balancer_create(out, conf):
 * Create a balancer; it may have no endpoints.
 *
 * Thread: any
 * Owns:   the endpoints are borrowed and must outlive ${out}
 * Errors: 0; -EINVAL (over BALANCER_MAX_ENDPOINTS or BALANCER_MAX_WEIGHT, or a bad level); -ENOMEM
 * Source: nginx, ngx_http_upstream_round_robin; Thaler and Ravishankar (1998) and Schindelhauer and
 *         Schomaker (2005), weighted rendezvous hashing; Eisenbud et al., "Maglev" (NSDI 2016) 3.4;
 *         Mirrokni et al., "Consistent Hashing with Bounded Loads" (2017); Mitzenmacher, "The Power
 *         of Two Choices" (2001)
 */
int balancer_create(struct balancer **out, const struct balancer_conf *conf) NODISCARD;

/*
 * balancer_destroy(b):
 * Free ${b} or NULL.
 *
 * Thread: any, after the last pick
 */
void balancer_destroy(struct balancer *b);

/*
 * balancer_begin(pick, key):
 * Start a session's picks; ${key} hashes the client's address.
 *
 * Thread: any
 */
void balancer_begin(struct balancer_pick_state *pick, uint64_t key);

/*
 * balancer_pick(b, pick, out):
 * Enter an endpoint (endpoint_enter()) that ${pick} has not tried, and record it as tried.
 *
 * Thread: any
 * Owns:   the caller calls endpoint_leave() when the session there ends
 * Errors: 0; -EBUSY (usable untried endpoints are all full); -ENOENT (none is left, or
 *         BALANCER_TRIES were tried)
 */
int balancer_pick(struct balancer *b, struct balancer_pick_state *pick,
                  struct endpoint **out) NODISCARD;

/*
 * balancer_panics(b):
 * True while too few endpoints are fit.
 *
 * Thread: any
 */
bool balancer_panics(const struct balancer *b);

#endif
