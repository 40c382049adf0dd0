/*
 * upstream/resolver: looks up the host names and services of the configuration and keeps their
 * servers up to date.
 *
 * A lookup blocks, so it runs on an executor, as many names at a time as that has threads; the
 * control loop puts the answer to use. A known name is looked up again when its answer expires:
 * after its TTL, within resolve_interval_min and resolve_interval. After a failed lookup what was
 * known stays, and the next comes after resolve_interval or ${retry_ns}, whichever is shorter. Each
 * pause has jitter, so that names that were looked up together do not stay together. No session
 * ever waits for a name: it goes to the servers that are known.
 *
 *   lookup (executor) -> answer (control loop) -> lookup, after a pause
 *
 * A service takes one lookup for its SRV records and one for each host in them. Each is a task of
 * its own, so that other names have their turns in between, and together they have ${service_ns}. A
 * host that fails keeps the addresses of the last answer; a host that is unknown is left out.
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

/* Of so many addresses of a name, or of all hosts of a service, use is made. */
#define RESOLVER_ADDRESSES 256

struct resolver_conf {
    struct executor *executor;
    struct loop *control;
    struct upstream **upstreams;
    unsigned n_upstreams;
    int64_t retry_ns;   /* most from the end of a lookup that failed to the next */
    int64_t service_ns; /* for all hosts of a service; what has begun then is still waited for */
    uint64_t seed;      /* of the jitter: different in each process */
    /* resolve_host(), or what a test has in its place. On a thread of the executor. */
    int (*lookup)(struct address *out, size_t max, const char *word, struct dns_terms *terms);
    /* srv_resolve(), or what a test has in its place. Likewise. */
    int (*lookup_service)(struct srv_record *out, size_t max, const char *name,
                          struct dns_terms *terms);
    /* Would a connection from ${up} to ${a} come in at ${up} again? On a thread of the executor. */
    bool (*leads_back)(void *cookie, const struct upstream *up, const struct address *a);
    void *cookie;
};

/*
 * resolver_create(out, conf):
 * Collect the lines of all upstreams whose addresses are not known.
 *
 * Thread: before start
 * Owns:   the caller owns ${out}; ${conf} is copied, what it points at is borrowed
 * Errors: 0; -ENOMEM
 */
int resolver_create(struct resolver **out, const struct resolver_conf *conf) NODISCARD;

/*
 * resolver_names(r):
 * How many names there are to look up, known or not.
 *
 * Thread: any
 */
unsigned resolver_names(const struct resolver *r);

/*
 * resolver_start(r, wait_ns):
 * Begin to look up all names, and wait until each was answered once, for better or worse, but no
 * longer than ${wait_ns}. Returns at once when there are no names. What comes of it is logged,
 * errors too.
 *
 * Thread: main
 * Units:  ns, for all names together
 * Errors: 0; -ENODATA (a name is not known without which nothing is to start); as
 *         executor_schedule()
 */
int resolver_start(struct resolver *r, int64_t wait_ns) NODISCARD;

/*
 * resolver_destroy(r):
 * Free it; NULL is allowed.
 *
 * Thread: after the control loop and the executor have ended, or were never started
 */
void resolver_destroy(struct resolver *r);

#endif
