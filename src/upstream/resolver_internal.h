/*
 * upstream/resolver_internal: what the parts of the resolver know of each other: resolver.c (when names are looked up, and
 * what comes of it) and resolver_lookup.c (looking one up). Private to them.
 */
#ifndef UPSTREAM_RESOLVER_INTERNAL_H
#define UPSTREAM_RESOLVER_INTERNAL_H

#include "engine/promise.h"
#include "upstream/resolver.h"

/* What a lookup has found: of a service, the addresses of one record after those of another. */
struct resolver_found {
    unsigned n;
    struct address list[RESOLVER_ADDRESSES];
    unsigned record[RESOLVER_ADDRESSES]; /* where each comes from */
    unsigned weight[RESOLVER_ADDRESSES];
    unsigned level[RESOLVER_ADDRESSES];
};

/* A line and the name in it. One of its two tasks waits, runs, or both are done with: what follows has one owner. */
struct resolver_name {
    struct timed lookup;
    struct task answer;
    struct promise answered; /* the first time; cancelled: nobody waits for it any more */
    struct resolver *resolver;
    struct upstream *upstream;
    const struct upstream_server_conf *server;
    unsigned line;
    bool known;
    bool loops;                   /* some address of the last answer leads back, which was told */
    int error;                    /* of the last lookup; 0: it went well, or there was none yet */
    int looked_up;                /* of the one that is to be answered: 0, or -errno */
    struct resolver_found *found; /* of that one */
};

struct resolver {
    struct resolver_conf conf;
    unsigned n_names;
    struct resolver_name names[];
};

/*
 * resolver_look_up(name):
 * Find out what ${name} stands for, in memory of its own: ${name}->found, without what would lead back to us.
 *
 * Thread: one of the executor
 * Owns:   the caller frees ${name}->found, also after an error
 * Errors: 0; as resolver_conf.lookup() and lookup_service(); -ELOOP (all of it would lead back); -ENOMEM
 */
int resolver_look_up(struct resolver_name *name) MUST_CHECK;

#endif
