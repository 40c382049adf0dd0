/*
 * upstream/balancer: which endpoint of a group gets the next session, and which one after that
 * failed.
 *
 * A balancer is made for one set of endpoints and never changes: a group that gains or loses one
 * gets a new balancer. What the endpoints are like now (marks, how many sessions) is read at each
 * pick. No lock, no system call, no allocation. Endpoints of weight 0 are left out: they are never
 * picked, own no key, and count neither as present nor as fit.
 *
 *   balancer_pick -> the kind's own choice -> fit? not tried? room? -> yes: entered
 *                              ^------- next choice ------- no           (balancer_cycle, _least,
 *                              _rendezvous, ...)
 *
 * Endpoints have levels, and those of one are picked only when none of a lower one is fit that was
 * not tried; that these are full is no reason. When too few of the lowest are fit
 * (panic_threshold), fit ones of higher levels share their sessions, by weight, as many levels as
 * it takes. When all levels together have too few (panic), marks other than ABSENT are ignored: to
 * overload the few that are left would only take them down too. When none of the lowest level is
 * fit and others are, these take over, and that is no panic. Those that are out only because
 * sessions failed there (ENDPOINT_EJECTED) are the last resort when no other is left.
 *
 * One that warms up gets a part of its share that grows from a tenth to all while its slow start
 * lasts: kinds that go by load count its weight so much less, and the others take it with that
 * chance, and otherwise pass it over. If only such ones are left, or all warm up, they are as any
 * other. Kinds that go by the key draw by the key, so that a client that has come to it stays
 * there.
 */
#ifndef UPSTREAM_BALANCER_H
#define UPSTREAM_BALANCER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "upstream/endpoint.h"

#define BALANCER_MAX_WEIGHT    256
#define BALANCER_MAX_ENDPOINTS 65535

/* The most endpoints that are tried for one session. */
#define BALANCER_TRIES 16

/* Levels are 0 to one less than this. */
#define BALANCER_LEVELS 8

enum balancer_kind {
    BALANCER_ROUND_ROBIN,       /* smooth weighted */
    BALANCER_LEAST_CONNECTIONS, /* fewest sessions for their weight; of equals in turn */
    /* of two that are drawn by weight the one with fewer sessions for its weight */
    BALANCER_RANDOM,
    BALANCER_SOURCE_HASH, /* by the client's address: rendezvous hashing */
    BALANCER_MAGLEV,      /* by the client's address: the same by a lookup table of slots */
    BALANCER_FIRST        /* the first that has room */
};

struct balancer;

struct balancer_conf {
    enum balancer_kind kind;
    struct endpoint *const
        *endpoints; /* of one endpoint_group, in the order of the configuration; copied */
    unsigned n_endpoints;
    unsigned
        /* SOURCE_HASH, MAGLEV: percent of its share that an endpoint may have; 0: unbounded */
        hash_balance_factor;
    unsigned panic_threshold; /* percent of the lowest level that must be fit; 0: never panic */
    int64_t slow_start_ns;    /* how long ENDPOINT_WARMING lasts */
    uint32_t generation;      /* differs from that of other balancers of the group */
};

/* What one session has tried. */
struct balancer_pick_state {
    uint64_t key; /* SOURCE_HASH and MAGLEV: hash of the client's address */
    uint32_t
        /* of the balancer whose places these are; with another one they are forgotten */
        generation;
    uint16_t n_tried;
    uint16_t tried[BALANCER_TRIES]; /* places in the balancer's list */
};

/*
 * balancer_create(out, conf):
 * Lay out the tables. Levels without endpoints are no levels. No endpoint at all is allowed.
 *
 * Thread: any
 * Owns:   the caller owns ${out}; the endpoints are borrowed and must outlive it
 * Errors: 0; -EINVAL (over BALANCER_MAX_ENDPOINTS, a weight over BALANCER_MAX_WEIGHT, or a level
 *         that there is not); -ENOMEM
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
 * Thread: any, when nobody picks any more
 */
void balancer_destroy(struct balancer *b);

/*
 * balancer_begin(walk, key):
 * Nothing was tried yet.
 *
 * Thread: any
 */
void balancer_begin(struct balancer_pick_state *walk, uint64_t key);

/*
 * balancer_pick(b, walk, out):
 * The endpoint for the session of ${walk}, one that it has not tried. It is entered
 * (endpoint_enter()) and noted as tried.
 *
 * Thread: any
 * Owns:   the caller calls endpoint_leave() when the session has ended there
 * Errors: 0; -EBUSY (all that are fit, or the last resort, and were not tried have as many sessions
 *         as they may have); -ENOENT (all that can be used were tried, or BALANCER_TRIES were)
 */
int balancer_pick(struct balancer *b, struct balancer_pick_state *walk,
                  struct endpoint **out) NODISCARD;

/*
 * balancer_panics(b):
 * Are too few endpoints fit now?
 *
 * Thread: any
 */
bool balancer_panics(const struct balancer *b);

#endif
