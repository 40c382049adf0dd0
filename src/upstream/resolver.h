/*
 * upstream/resolver: resolve host names and SRV records periodically and update their servers.
 *
 * Lookups block, so they run on the executor; the control loop applies answers. The next lookup
 * comes when the TTL expires, within resolve_interval_min and resolve_interval; a failure keeps the
 * last answer and waits for the shorter of resolve_interval and ${retry_ns}. Jitter keeps names
 * apart. Sessions never wait for a lookup.
 *
 * A service takes one task for its SRV records and one per host; hosts have ${service_ns} in total.
 * A failed host keeps its last addresses; an unknown one is left out.
 */
#ifndef UPSTREAM_RESOLVER_H
#define UPSTREAM_RESOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"
#include "upstream/upstream.h"

struct dns_terms;
struct executor;
struct srv_record;
struct resolver;

/* Maximum addresses of a name. */
#define RESOLVER_ADDRESSES 256

struct resolver_conf {
    struct executor *executor;
    struct loop *control;
    struct upstream **upstreams;
    unsigned n_upstreams;
    int64_t retry_ns;   /* maximum pause after a failure */
    int64_t service_ns; /* for all hosts of a service, until the last lookup begins */
    uint64_t seed;      /* for jitter; unique to the process */
    /* resolve_host() or a test double. On an executor thread. */
    int (*lookup)(struct address *out, size_t max, const char *word, struct dns_terms *terms);
    /* srv_resolve(), likewise. */
    int (*lookup_service)(struct srv_record *out, size_t max, const char *name,
                          struct dns_terms *terms);
    /* Loop check: would a connection from ${up} to ${a} reach ${up}? On an executor thread. */
    bool (*leads_back)(void *cookie, const struct upstream *up, const struct address *a);
    void *cookie;
};

/*
 * resolver_create(out, conf):
 * Collect the lines to resolve: names of servers that are not disabled.
 *
 * Thread: before start
 * Owns:   ${conf} is copied, what it points at is borrowed
 * Errors: 0; -ENOMEM
 */
int resolver_create(struct resolver **out, const struct resolver_conf *conf) NODISCARD;

/*
 * resolver_names(r):
 * Number of names to look up.
 *
 * Thread: any
 */
unsigned resolver_names(const struct resolver *r);

/*
 * resolver_start(r, wait_ns):
 * Start all lookups and wait for the first results, ${wait_ns} at most in total. Logs results and
 * errors.
 *
 * Thread: main
 * Errors: 0; -ENODATA (a resolve_required name is unknown); as executor_schedule()
 */
int resolver_start(struct resolver *r, int64_t wait_ns) NODISCARD;

/*
 * resolver_destroy(r):
 * Free ${r} or NULL.
 *
 * Thread: when control loop and executor have ended or never started
 */
void resolver_destroy(struct resolver *r);

#endif
