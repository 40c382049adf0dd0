/*
 * check/checker: run the health checks of all upstreams, on one loop, and set ENDPOINT_DOWN and
 * ENDPOINT_WARMING.
 *
 *   checker -- group (an upstream) -- target (an endpoint)
 *
 * A target that does not start up is undecided until it is up or its first check has failed.
 *
 *   target:   TIMER --due--> WAITING --a slot is free--> UNDER WAY --outcome--> TIMER
 *
 * At most max_under_way checks run at once. Other due targets wait in order of due time; groups
 * take turns (checker_turn.c).
 *
 * When a group's rules change, targets keep health and statistics; a check under way keeps the old
 * rules.
 *
 * When descriptors or memory run out, checks pause and no server changes state.
 */
#ifndef CHECK_CHECKER_H
#define CHECK_CHECKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "balance/endpoint.h"
#include "base/must.h"
#include "check/check.h"
#include "check/health.h"
#include "net/address.h"
#include "net/netloop.h"

/* Default of max_under_way: a quarter of the usual descriptor limit. */
#define CHECKER_UNDER_WAY 256

struct arena;
struct checker;
struct checker_group;
struct checker_rules;
struct checker_target;

/* Does a check send a PROXY header? The version is that of the sessions. */
enum checker_header {
    CHECKER_HEADER_AUTO, /* only at the addresses that sessions use */
    CHECKER_HEADER_YES,  /* also elsewhere, and version 1 if sessions have none */
    CHECKER_HEADER_NO
};

struct checker_rules_conf {
    struct arena *memory; /* owns the data below; NULL: static data. See arena_hold() */
    struct check_conf check;
    enum checker_header header;
    struct health_conf health;
    int64_t slow_start_ns; /* duration of ENDPOINT_WARMING; 0: off */
};

struct checker_group_conf {
    const char *name; /* of the upstream, for logs */
    /*
     * Called on the loop after ENDPOINT_DOWN of ${e} changed; may add and remove any target. May be
     * NULL.
     */
    void (*changed)(void *cookie, struct endpoint *e, bool is_up);
    /*
     * Called on the loop when ${e}, which is up, passed a check; ${as_sessions}: at the addresses
     * that sessions use. Must not add or remove targets. May be NULL.
     */
    void (*passed)(void *cookie, struct endpoint *e, bool as_sessions);
    /*
     * Called on the loop with each check that ended, instead of the verdict: then checks say
     * nothing about health. May be NULL.
     */
    void (*answered)(void *cookie, struct endpoint *e, const struct check *c);
    /* Called on the loop when no target is undecided any more. May be NULL. */
    void (*decided)(void *cookie);
    void *cookie;
    _Atomic uint64_t *n_late; /* counter of late checks; may be NULL */
    bool with_absent;         /* also check servers that are ENDPOINT_ABSENT */
};

struct checker_target_conf {
    struct endpoint *endpoint;
    const struct address *address; /* NULL: the endpoint's addresses; port 0: the endpoint's port */
    unsigned port;                 /* 0: as in the address */
    int64_t interval_ns;           /* 0: by the rules, like rise and fall */
    unsigned rise, fall;
    bool has_send_proxy; /* else by the rules */
    enum proxy_header_version send_proxy;
};

struct checker_stats {
    uint64_t checks;
    uint64_t failed;
    uint64_t undecided; /* no verdict: we had no descriptor, memory or local port */
    bool is_up;
    int64_t since_at_ns;
    enum check_outcome last; /* valid when checks > 0 */
    int64_t last_duration_ns;
};

struct checker_load {
    unsigned targets;
    unsigned under_way;
    unsigned waiting; /* due checks that wait for a slot or resources */
};

/*
 * checker_create(out, net, seed):
 * Create a checker. It makes no checks before checker_set_limit(). ${seed}, unique to the process,
 * is for jitter.
 *
 * Thread: checker's loop, or main before it starts
 * Owns:   ${net} must outlive ${out}
 * Errors: 0; -ENOMEM
 */
int checker_create(struct checker **out, struct netloop *net, uint64_t seed) NODISCARD;

/*
 * checker_destroy(k):
 * Free ${k} with its groups, and remove their targets; NULL is allowed.
 *
 * Thread: main, after the loop has ended
 */
void checker_destroy(struct checker *k);

/*
 * checker_reserve(k, max_under_way) / checker_set_limit(k, max_under_way):
 * Allocate for ${max_under_way} checks at once / make this the limit. When it is lowered, checks
 * under way end normally.
 *
 * Thread: checker's loop, or main before it starts
 * Units:  each check takes a descriptor; 0: no checks
 * Errors: 0; -ENOMEM
 */
int checker_reserve(struct checker *k, unsigned max_under_way) NODISCARD;
void checker_set_limit(struct checker *k, unsigned max_under_way);

/*
 * checker_rules_create(out, conf) / checker_rules_release(r):
 * Create rules / release a reference (NULL is allowed).
 *
 * Thread: checker's loop, or main while it does not run
 * Owns:   ${conf} is copied; ${out} holds a reference to conf->memory
 * Errors: 0; -ENOMEM; as check_script_init()
 */
int checker_rules_create(struct checker_rules **out,
                         const struct checker_rules_conf *conf) NODISCARD;
void checker_rules_release(struct checker_rules *r);

/*
 * checker_group_create(out, k, conf) / checker_group_close(g):
 * Create a group, without rules or targets / remove the targets of ${g} and free it.
 *
 * Thread: checker's loop, or main while it does not run
 * Owns:   the checker owns ${out}; ${conf} is copied; what it points at must outlive ${out}
 * Errors: 0; -ENOMEM
 */
int checker_group_create(struct checker_group **out, struct checker *k,
                         const struct checker_group_conf *conf) NODISCARD;
void checker_group_close(struct checker_group *g);

/*
 * checker_group_use(g, r):
 * Check ${g} by ${r} from now on. A shorter interval applies at once.
 *
 * Thread: checker's loop
 * Owns:   the group owns ${r}
 */
void checker_group_use(struct checker_group *g, struct checker_rules *r);

/*
 * checker_rules_hold(r):
 * Add a reference and return ${r}.
 *
 * Thread: checker's loop, or main while it does not run
 */
struct checker_rules *checker_rules_hold(struct checker_rules *r);

/*
 * checker_group_take(g, from) / checker_group_undecided(g):
 * Move all targets of ${from}, which has the rules of ${g}, to ${g}: they keep health, statistics
 * and checks under way / return the number of undecided targets.
 *
 * Thread: checker's loop
 */
void checker_group_take(struct checker_group *g, struct checker_group *from);
unsigned checker_group_undecided(const struct checker_group *g);

/*
 * checker_target_create(out) / checker_target_destroy(t):
 * Create a target / free one that is in no group (NULL is allowed).
 *
 * Errors: 0; -ENOMEM
 */
int checker_target_create(struct checker_target **out) NODISCARD;
void checker_target_destroy(struct checker_target *t);

/*
 * checker_add(t, g, conf):
 * Add ${t}, which is in no group, to ${g}. An endpoint with ENDPOINT_DOWN is down at first, and is
 * checked at once. Any other is up at first, and is checked within an interval.
 *
 * Thread: checker's loop
 * Owns:   ${conf} is copied; ${t}, endpoint and address must live until ${t} leaves the group
 * Errors: 0; -ESHUTDOWN (the loop is ending)
 */
int checker_add(struct checker_target *t, struct checker_group *g,
                const struct checker_target_conf *conf) NODISCARD;

/*
 * checker_use(t, conf):
 * Check ${t} at another address or port from now on.
 *
 * Thread: checker's loop
 * Owns:   as checker_add()
 */
void checker_use(struct checker_target *t, const struct checker_target_conf *conf);

/*
 * checker_remove(t):
 * Remove ${t} from its group and cancel its check. The endpoint keeps its flags.
 *
 * Thread: checker's loop
 */
void checker_remove(struct checker_target *t);

/* checker_has(t): is ${t} in a group? Thread: checker's loop, or main while it does not run */
bool checker_has(const struct checker_target *t);

/* checker_is_undecided(t): is ${t} in a group, and undecided? Thread: as checker_has() */
bool checker_is_undecided(const struct checker_target *t);

/*
 * checker_retry_now(t):
 * Check ${t} at once if its last check found no address: the address may be known now.
 *
 * Thread: checker's loop
 */
void checker_retry_now(struct checker_target *t);

/*
 * checker_stats(t, out) / checker_load(k, out):
 * Copy a target's statistics / the checker's load.
 *
 * Thread: checker's loop
 */
void checker_stats(const struct checker_target *t, struct checker_stats *out);
void checker_load(const struct checker *k, struct checker_load *out);

#endif
