/*
 * upstream/checker: all health checks of the process, on one loop.
 *
 *   checker -- group (an upstream: what to send, expect, how often) -- target (one endpoint)
 *
 *   target:   TIMER --due--> WAITING --a slot is free--> UNDER WAY --outcome--> TIMER
 *
 * Workers do no checks: a server gets one check an interval, not one from each of them. What comes
 * of it is marks on the endpoint (ENDPOINT_DOWN, ENDPOINT_WARMING), which they read.
 *
 * At most max_under_way checks are made at a time. Targets that are due meanwhile wait, those of a
 * group in the order in which they became due; groups take turns, and each has a limit of checks
 * under way that leaves room for the others (checker_turn.c). An interval counts from when a check
 * began, so that checks that had to wait are not made up for later. A check that begins late is
 * counted and logged.
 *
 * When the process has no descriptors or memory for a check, none is begun for a while, and what
 * was learned about no server is held against none.
 */
#ifndef UPSTREAM_CHECKER_H
#define UPSTREAM_CHECKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "net/address.h"
#include "net/netloop.h"
#include "upstream/check.h"
#include "upstream/endpoint.h"
#include "upstream/health.h"

/*
 * A good value of checker_conf.max_under_way: a quarter of the descriptors a process usually may
 * have.
 */
#define CHECKER_UNDER_WAY 256

struct checker;
struct checker_group;
struct checker_target;

struct checker_conf {
    unsigned max_under_way; /* at least 1; each takes a descriptor */
    uint64_t seed;          /* of the jitter: different in each process */
    /*
     * The last target that had to be CHECKED was, or was removed. On the loop. NULL: nobody asks.
     */
    void (*decided)(void *cookie);
    void *cookie;
};

struct checker_group_conf {
    const char *name; /* of the upstream, for logs */
    struct check_conf check;
    struct health_conf health;
    int64_t
        /* how long ENDPOINT_WARMING is held against one that came up; 0: it is not */
        slow_start_ns;
    /*
     * ${e} has gone down, or come up, and is marked so. On the loop; may add and remove any target.
     * NULL: nobody asks.
     */
    void (*changed)(void *cookie, struct endpoint *e, bool is_up);
    /*
     * A check of ${e} has passed that connected where sessions connect, and it is up. On the loop;
     * adds and removes no target. NULL: nobody asks.
     */
    void (*passed)(void *cookie, struct endpoint *e);
    void *cookie;
    _Atomic uint64_t *n_late; /* counts checks that begin late; NULL: nobody reads it */
};

struct checker_target_conf {
    struct endpoint *endpoint;
    const struct address *
        /*
         * to check in place of the endpoint's; without a port: with the endpoint's; NULL: the
         * endpoint's
         */
        address;
    unsigned port; /* to check in place of the address'; 0: the address' */
};

/* What became of the checks of one target. */
struct checker_stats {
    uint64_t checks;
    uint64_t failed;
    uint64_t undecided; /* we could not make them */
    uint64_t late;      /* they began late */
    bool is_up;
    int64_t since_at_ns;
    enum check_outcome last; /* when checks > 0 */
    int64_t last_duration_ns;
};

/* How busy the checker is. */
struct checker_load {
    unsigned targets;
    unsigned under_way;
    unsigned waiting;   /* due, but for max_under_way or a lack of resources */
    unsigned undecided; /* HEALTH_STARTS_CHECKED, and not checked yet */
};

/*
 * checker_create(out, net, conf):
 * A checker with nothing to check.
 *
 * Thread: loop of ${net}, or before it is started
 * Owns:   the caller owns ${out}; ${net} is borrowed
 * Errors: 0; -ENOMEM
 */
int checker_create(struct checker **out, struct netloop *net,
                   const struct checker_conf *conf) NODISCARD;

/*
 * checker_destroy(k):
 * Free it with its groups and targets; NULL is allowed. The end of the loop has ended its checks.
 *
 * Thread: after the loop has ended
 */
void checker_destroy(struct checker *k);

/*
 * checker_group_open(out, k, conf):
 * A group without targets.
 *
 * Thread: loop of ${k}
 * Owns:   the checker owns ${out}, until checker_group_close(); ${conf} is copied, the text and
 *         bytes in it are borrowed
 * Errors: 0; -ENOMEM; as check_script_init()
 */
int checker_group_open(struct checker_group **out, struct checker *k,
                       const struct checker_group_conf *conf) NODISCARD;

/*
 * checker_group_close(g):
 * Remove what targets ${g} has, and free it.
 *
 * Thread: loop of the checker
 */
void checker_group_close(struct checker_group *g);

/*
 * checker_add(out, g, conf):
 * Check an endpoint from now on. If it starts up it is checked first within an interval, else at
 * once; then the caller has marked it ENDPOINT_DOWN.
 *
 * Thread: loop of the checker
 * Owns:   the group owns ${out}, until checker_remove(); ${conf} is copied, the endpoint and
 *         address are borrowed till then
 * Errors: 0; -ENOMEM; -ESHUTDOWN (the loop is ending)
 */
int checker_add(struct checker_target **out, struct checker_group *g,
                const struct checker_target_conf *conf) NODISCARD;

/*
 * checker_remove(t):
 * Check it no more. A check that is under way ends in this turn, and nothing comes of it. The
 * endpoint's marks stay.
 *
 * Thread: loop of the checker
 * Owns:   ${t} is gone, and what was borrowed for it is given back
 */
void checker_remove(struct checker_target *t);

/*
 * checker_look(t):
 * Check ${t} now if its last check was skipped because the endpoint had no address. Call it when
 * there may be one.
 *
 * Thread: loop of the checker
 */
void checker_look(struct checker_target *t);

/*
 * checker_stats(t, out) / checker_load(k, out):
 * What they say.
 *
 * Thread: loop of the checker
 */
void checker_stats(const struct checker_target *t, struct checker_stats *out);
void checker_load(const struct checker *k, struct checker_load *out);

#endif
