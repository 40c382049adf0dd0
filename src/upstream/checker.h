/*
 * upstream/checker: health checks of all upstreams, on one loop; set ENDPOINT_DOWN and
 * ENDPOINT_WARMING.
 *
 *   checker -- group (an upstream) -- target (an endpoint)
 *
 *   target:   TIMER --due--> WAITING --a slot is free--> UNDER WAY --outcome--> TIMER
 *
 * At most max_under_way checks run at once. Other due targets wait by due time; groups take turns
 * (checker_turn.c). Intervals run from start to start; late checks are counted and logged.
 *
 * Without descriptors or memory, checks pause and no server changes state.
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

/* Default of max_under_way: a quarter of a process' usual descriptors. */
#define CHECKER_UNDER_WAY 256

struct checker;
struct checker_group;
struct checker_target;

struct checker_conf {
    unsigned max_under_way; /* at least 1; each takes a descriptor */
    uint64_t seed;          /* for jitter; unique to the process */
    /* All HEALTH_STARTS_CHECKED targets are decided or removed. On the loop; may be NULL. */
    void (*decided)(void *cookie);
    void *cookie;
};

struct checker_group_conf {
    const char *name; /* of the upstream, for logs */
    struct check_conf check;
    struct health_conf health;
    int64_t slow_start_ns; /* duration of ENDPOINT_WARMING; 0: off */
    /*
     * ${e} went down or came up and is flagged. On the loop; may add and remove any target. May be
     * NULL.
     */
    void (*changed)(void *cookie, struct endpoint *e, bool is_up);
    /*
     * A check of ${e}, which is up, passed at its session addresses. On the loop; must not add or
     * remove targets. May be NULL.
     */
    void (*passed)(void *cookie, struct endpoint *e);
    void *cookie;
    _Atomic uint64_t *n_late; /* late checks; may be NULL */
};

struct checker_target_conf {
    struct endpoint *endpoint;
    const struct address *address; /* NULL: the endpoint's; may lack a port: the endpoint's */
    unsigned port;                 /* 0: the address' */
};

struct checker_stats {
    uint64_t checks;
    uint64_t failed;
    uint64_t undecided; /* without verdict: no descriptor, memory or local port for the check */
    uint64_t late;      /* began late */
    bool is_up;
    int64_t since_at_ns;
    enum check_outcome last; /* valid when checks > 0 */
    int64_t last_duration_ns;
};

struct checker_load {
    unsigned targets;
    unsigned under_way;
    unsigned waiting;   /* due, but no slot or resources */
    unsigned undecided; /* HEALTH_STARTS_CHECKED, not yet checked */
};

/*
 * checker_create(out, net, conf):
 * Create a checker.
 *
 * Thread: loop of ${net}, or before it starts
 * Owns:   ${net} is borrowed
 * Errors: 0; -ENOMEM
 */
int checker_create(struct checker **out, struct netloop *net,
                   const struct checker_conf *conf) NODISCARD;

/*
 * checker_destroy(k):
 * Free it with groups and targets; NULL is allowed.
 *
 * Thread: after the loop has ended
 */
void checker_destroy(struct checker *k);

/*
 * checker_group_open(out, k, conf):
 * Create a group.
 *
 * Thread: loop of ${k}
 * Owns:   the checker owns ${out}; ${conf} is copied, its text and bytes are borrowed
 * Errors: 0; -ENOMEM; as check_script_init()
 */
int checker_group_open(struct checker_group **out, struct checker *k,
                       const struct checker_group_conf *conf) NODISCARD;

/*
 * checker_add(out, g, conf):
 * Check an endpoint: first within an interval if it starts up, else (ENDPOINT_DOWN set by the
 * caller) at once.
 *
 * Thread: checker's loop
 * Owns:   the group owns ${out}; ${conf} is copied, endpoint and address are borrowed
 * Errors: 0; -ENOMEM; -ESHUTDOWN (the loop is ending)
 */
int checker_add(struct checker_target **out, struct checker_group *g,
                const struct checker_target_conf *conf) NODISCARD;

/*
 * checker_remove(t):
 * Free ${t} and cancel its check. The endpoint keeps its flags.
 *
 * Thread: checker's loop
 */
void checker_remove(struct checker_target *t);

/*
 * checker_retry_now(t):
 * Repeat a check skipped for lack of an address. Call it when one may be known.
 *
 * Thread: checker's loop
 */
void checker_retry_now(struct checker_target *t);

/*
 * checker_stats(t, out) / checker_load(k, out):
 * Copy a target's statistics; the checker's load.
 *
 * Thread: checker's loop
 */
void checker_stats(const struct checker_target *t, struct checker_stats *out);
void checker_load(const struct checker *k, struct checker_load *out);

#endif
