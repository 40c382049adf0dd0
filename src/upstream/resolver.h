/*
 * upstream/resolver: resolve host names and SRV records periodically and update their servers.
 *
 * Lookups block, so they run on the executor; the control loop applies answers. The next lookup
 * comes when the TTL expires, within resolve_interval_min and resolve_interval, with jitter. A
 * failure keeps the last answer; the next lookup comes after resolve_interval or `retry_ns`,
 * whichever is shorter.
 *
 * A service takes one task for its SRV records and one per host; all hosts together get
 * `service_ns`. A host whose lookup fails keeps its last addresses, or is left out if it has none.
 *
 * A new configuration is used when its new names are looked up; its other names keep addresses and
 * timers.
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
struct proxy_loop; /* defined by the caller */
struct srv_record;
struct resolver;
struct resolver_change;

/* Maximum addresses of a name. */
#define RESOLVER_ADDRESSES 256

struct resolver_conf {
    struct executor *executor;
    struct loop *control;
    int64_t retry_ns;   /* maximum pause after a failure */
    int64_t service_ns; /* lookups of a service's hosts begin within this time */
    uint64_t seed;      /* for jitter; unique to the process */
    /* resolve_host() or a test double, called on an executor thread. */
    int (*lookup)(struct address *out, size_t max, const char *word, struct dns_terms *terms);
    /* srv_resolve() or a test double, called on an executor thread. */
    int (*lookup_service)(struct srv_record *out, size_t max, const char *name,
                          struct dns_terms *terms);
    /*
     * Loop check: would a connection from ${upstream} to ${a} reach ${upstream} again? On an
     * executor thread, or the control loop.
     */
    bool (*leads_back)(const struct proxy_loop *listeners, const char *upstream,
                       const struct address *a);
    /* Add a reference to ${listeners}; drop one (NULL is allowed). Not on executor threads. */
    void (*hold)(struct proxy_loop *listeners);
    void (*release)(struct proxy_loop *listeners);
};

struct resolver_next {
    const struct upstream_next *list; /* all upstreams */
    unsigned n;
    struct proxy_loop *listeners; /* for leads_back(); a reference is kept */
    int64_t wait_ns;              /* longest wait for the first answers of new names */
    /*
     * Called on the control loop when all new names have an answer or wait_ns is over; not inside
     * resolver_prepare(), not when the loop ends. ${error}: 0; -ENODATA (logged): a new name has no
     * address, and resolve_required is set.
     */
    void (*ready)(void *cookie, int error);
    void *cookie;
};

/*
 * resolver_create(out, conf):
 * Create a resolver, without names.
 *
 * Thread: main, before start
 * Owns:   ${conf} is copied; what it points at must outlive ${out}
 * Errors: 0; -ENOMEM
 */
int resolver_create(struct resolver **out, const struct resolver_conf *conf) NODISCARD;

/*
 * resolver_names(list, n):
 * Number of names to look up; disabled servers do not count.
 *
 * Thread: any
 */
unsigned resolver_names(const struct upstream_next *list, unsigned n);

/*
 * resolver_prepare(r, next, out):
 * Look up the new names of ${next}; ready() follows. One change at a time.
 *
 * Thread: control loop
 * Owns:   ${next} and its list are copied; the upstreams must live until a change commits without
 *         them; commit and cancel free ${out}
 * Errors: 0; -ENOMEM; -EAGAIN, -ESHUTDOWN (logged: the executor has no thread)
 */
int resolver_prepare(struct resolver *r, const struct resolver_next *next,
                     struct resolver_change **out) NODISCARD;

/*
 * resolver_find_places(change, up, line, places):
 * Fill ${places} with the servers of ${line} from the first answer. Returns how many; 0: no answer,
 * or the name is not new.
 *
 * Thread: control loop
 * Owns:   the addresses are valid until resolver_commit() or resolver_cancel()
 * Units:  ${places} has room for RESOLVER_ADDRESSES
 */
unsigned resolver_find_places(const struct resolver_change *change, const struct upstream *up,
                              const struct upstream_server_conf *line,
                              struct membership_place *places);

/*
 * resolver_commit(change) / resolver_cancel(change):
 * From now on look up the names of the next configuration only / free ${change} and its new names.
 * Commit after ready(), when the upstreams have their new lines.
 *
 * Thread: control loop
 */
void resolver_commit(struct resolver_change *change);
void resolver_cancel(struct resolver_change *change);

/*
 * resolver_start(r, next):
 * Prepare and commit ${next} on the control loop, and wait for the commit; next->ready() is not
 * called. Logs results and errors.
 *
 * Thread: main
 * Owns:   as resolver_prepare()
 * Errors: 0; -ENODATA (a resolve_required name is unknown); as resolver_prepare(); as loop_submit()
 *         (logged)
 */
int resolver_start(struct resolver *r, const struct resolver_next *next) NODISCARD;

/*
 * resolver_destroy(r):
 * Free ${r} or NULL.
 *
 * Thread: main, when control loop and executor have ended or never started
 */
void resolver_destroy(struct resolver *r);

#endif
