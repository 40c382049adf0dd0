/*
 * balance/balancer: load balancing: pick an endpoint for a session and its retries.
 *
 * A balancer is immutable; changed endpoints need a new one. Picks take no lock and read current
 * flags and session counts. Endpoints of weight 0 are left out.
 *
 * Levels: a session gets a higher level only after it tried all fit endpoints of the lower levels.
 * If these are full, the pick fails instead, unless balancer_conf.spills is set.
 *   - When the lowest level has too few fit endpoints (panic_threshold), higher levels share its
 *     sessions by weight; when it has none, they take over.
 *   - Panic: all levels together have too few fit endpoints, some of them in the lowest level, or
 *     none at all. All flags but ENDPOINT_ABSENT are ignored, so that the few fit endpoints are not
 *     overloaded.
 *   - Last resort: endpoints that are unfit only because they are ejected.
 *
 * Endpoints in use: those of the lowest level with fit endpoints. With balancer_conf.stays, they
 * stay in use as long as one of them is fit, whatever lower levels have; with BALANCER_FIRST only
 * one endpoint is in use. All others get sessions only while those in use are full, with `spills`.
 *
 * Slow start: an endpoint's share grows from a tenth to all of its weight. Kinds of balancer that
 * compare loads reduce the weight; the others accept the endpoint with that share as probability.
 * Hashing kinds draw by the key, so that clients keep their server. If all endpoints are warming,
 * all weights count fully.
 */
#ifndef BALANCE_BALANCER_H
#define BALANCE_BALANCER_H

#include <stdbool.h>
#include <stdint.h>

#include "balance/endpoint.h"
#include "base/must.h"

#define BALANCER_MAX_WEIGHT    256
#define BALANCER_MAX_ENDPOINTS 65535

/* Maximum endpoints tried for a session. */
#define BALANCER_TRIES 16

#define BALANCER_LEVELS 8

enum balancer_kind {
    BALANCER_ROUND_ROBIN,       /* smooth weighted round robin */
    BALANCER_LEAST_CONNECTIONS, /* fewest sessions per weight */
    BALANCER_RANDOM,            /* the less loaded of two that are drawn by weight */
    BALANCER_SOURCE_HASH,       /* client address, rendezvous hashing */
    BALANCER_MAGLEV,            /* client address, lookup table */
    BALANCER_LEAST_TIME,        /* fastest answers, times sessions, per weight */
    BALANCER_FIRST              /* the first endpoint that is not full; the last kind */
};

#define BALANCER_KINDS (BALANCER_FIRST + 1)

struct balancer;

struct balancer_share {
    unsigned weight;          /* 0: no sessions */
    unsigned level;           /* lowest first */
    unsigned max_connections; /* 0: unlimited */
};

struct balancer_conf {
    enum balancer_kind kind;
    struct endpoint *const *endpoints;   /* of one group, in configuration order; copied */
    const struct balancer_share *shares; /* of `endpoints`; NULL: the endpoints' own values */
    unsigned n_endpoints;
    /* hashing kinds: maximum sessions of an endpoint, in percent of its fair share; 0: no limit */
    unsigned hash_balance_factor;
    bool by_address; /* hashing kinds: endpoints are known by `address_hash`, not by `hash` */
    /* percent of the lowest level's endpoints; fewer fit ones are too few; 0: never panic */
    unsigned panic_threshold;
    bool spills;           /* sessions may go to a higher level when the lower ones are full */
    bool stays;            /* endpoints in use stay so until they fail */
    int64_t slow_start_ns; /* duration of ENDPOINT_WARMING */
    uint32_t generation;   /* unique in the group */
};

struct balancer_pick_state {
    uint64_t key;
    uint32_t generation; /* of the balancer that `tried` refers to */
    uint16_t n_tried;
    uint16_t tried[BALANCER_TRIES]; /* places; see balancer_internal.h */
};

/*
 * balancer_create(out, conf):
 * Create a balancer; it may have no endpoints.
 *
 * Owns:   the endpoints must outlive ${out}
 * Errors: 0; -EINVAL (over BALANCER_MAX_ENDPOINTS or BALANCER_MAX_WEIGHT, or a bad level); -ENOMEM
 * Source: nginx, ngx_http_upstream_round_robin; weighted rendezvous hashing: Thaler, Ravishankar
 *         (1998), Schindelhauer, Schomaker (2005); Eisenbud et al., "Maglev" (NSDI 2016) 3.4;
 *         bounded loads: Mirrokni et al. (2017); two choices: Mitzenmacher (2001)
 */
int balancer_create(struct balancer **out, const struct balancer_conf *conf) NODISCARD;

/* balancer_destroy(b): free ${b} or NULL. Thread: any, after the last pick */
void balancer_destroy(struct balancer *b);

/*
 * balancer_settle(b):
 * Choose the endpoints in use. Call it when ${b} replaces another balancer, before picks, and after
 * a change of flags.
 */
void balancer_settle(struct balancer *b);

/* balancer_begin(pick, key): start a session's picks; ${key} hashes the client's address. */
void balancer_begin(struct balancer_pick_state *pick, uint64_t key);

/*
 * balancer_pick(b, pick, out):
 * Pick an endpoint that ${pick} has not tried, add a session to it (endpoint_enter()), and record
 * it as tried.
 *
 * Owns:   the caller calls endpoint_leave() when the session there ends
 * Errors: 0; -EBUSY (all fit untried endpoints of these levels are full); -ENOENT (none is left, or
 *         BALANCER_TRIES were tried)
 */
int balancer_pick(struct balancer *b, struct balancer_pick_state *pick,
                  struct endpoint **out) NODISCARD;

/* balancer_stays(b): do endpoints in use stay so until they fail? */
bool balancer_stays(const struct balancer *b);

/* balancer_panics(b): true while too few endpoints are fit. */
bool balancer_panics(const struct balancer *b);

#endif
