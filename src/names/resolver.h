/*
 * names/resolver: resolve host names and SRV records periodically and update the servers.
 *
 * Lookups block, so they run on an executor; the control loop applies answers. The next lookup
 * comes when the TTL expires, within resolve_interval_min and resolve_interval, with jitter. A
 * failure, also of one address family, keeps the last answer; the next lookup comes after
 * resolve_interval or `retry_ns`, whichever is shorter. A name that does not exist any more keeps
 * its servers for resolve_hold.
 *
 * A service takes one executor task for its SRV records and one per host; no host lookup begins
 * after `service_ns`. A host whose lookup fails keeps its last addresses, if any.
 *
 * A reload first looks up its new names; unchanged names keep addresses and timers. A name that
 * another line has already, and at an upgrade each name of the old process, begins with the last
 * answer (names/resolver_cache).
 */
#ifndef NAMES_RESOLVER_H
#define NAMES_RESOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

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
    int64_t service_ns; /* host lookups begin within this time after the SRV answer */
    uint64_t seed;      /* random, for jitter */
    /* resolve_host() or a test double, called on an executor thread. */
    int (*lookup)(struct address *out, size_t max, const char *word, struct dns_terms *terms);
    /* srv_resolve() or a test double, as above. */
    int (*lookup_service)(struct srv_record *out, size_t max, const char *name,
                          struct dns_terms *terms);
    /*
     * Loop check: would a connection from ${upstream} to ${a} reach ${upstream} again? Called on
     * executor threads and on the control loop.
     */
    bool (*leads_back)(const struct proxy_loop *listeners, const char *upstream,
                       const struct address *a);
    /* Add / release a reference to ${listeners} (or NULL). Not called on executor threads. */
    void (*hold)(struct proxy_loop *listeners);
    void (*release)(struct proxy_loop *listeners);
};

struct resolver_next {
    const struct upstream_next *list; /* all upstreams */
    unsigned n;
    struct proxy_loop *listeners; /* for leads_back(); the resolver adds a reference */
    bool is_first;                /* at the start an upstream may be without a server */
    int64_t wait_ns;              /* longest wait for the first answers of new names */
    /*
     * Called on the control loop, after resolver_prepare(), when all new names have an answer or
     * wait_ns has passed. Not called if the loop ends first. ${error}: 0; -ENODATA (logged): a new
     * name has no address, and resolve_required is set or its upstream would have no server.
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
 * Return the number of names to look up, without those of disabled servers.
 */
unsigned resolver_names(const struct upstream_next *list, unsigned n);

/*
 * resolver_prepare(r, next, out):
 * Begin to look up the new names of ${next}; ready() follows. Only one change may be under way.
 *
 * Thread: control loop
 * Owns:   ${next} is copied, but not its list; the upstreams must live until a change without them
 *         is committed; commit and cancel free ${out}
 * Errors: 0; -ENOMEM; as executor_schedule() (logged)
 */
int resolver_prepare(struct resolver *r, const struct resolver_next *next,
                     struct resolver_change **out) NODISCARD;

/*
 * resolver_find_places(change, up, line, places):
 * Fill ${places} from the first answer to the new name of ${line}. Returns their number; 0: no
 * addresses yet, or the name is not new.
 *
 * Thread: control loop
 * Owns:   the addresses are valid until resolver_commit() or resolver_cancel()
 * Units:  ${places} has space for RESOLVER_ADDRESSES
 */
unsigned resolver_find_places(const struct resolver_change *change, const struct upstream *up,
                              const struct upstream_server_conf *line,
                              struct membership_place *places);

/*
 * resolver_commit(change) / resolver_cancel(change):
 * Switch to the names of the next configuration / free ${change} and its new names. Commit after
 * ready(), when the upstreams have their new server lines.
 *
 * Thread: control loop
 */
void resolver_commit(struct resolver_change *change);
void resolver_cancel(struct resolver_change *change);

/*
 * resolver_write(r, f) / resolver_read(r, text):
 * Write a line for each known name / use such lines, of another process, until the first
 * configuration is committed: their names need no first lookup.
 *
 * Thread: any / main, before start
 * Errors: 0; -ENOMEM
 */
void resolver_write(struct resolver *r, FILE *f);
int resolver_read(struct resolver *r, const char *text) NODISCARD;

/*
 * resolver_destroy(r):
 * Free ${r} or NULL.
 *
 * Thread: main, when the control loop and the executor have ended or never started
 */
void resolver_destroy(struct resolver *r);

#endif
