/* upstream/resolver_internal: shared by resolver.c, resolver_lookup.c and resolver_service.c. */
#ifndef UPSTREAM_RESOLVER_INTERNAL_H
#define UPSTREAM_RESOLVER_INTERNAL_H

#include "engine/promise.h"
#include "net/dns.h"
#include "net/srv.h"
#include "upstream/resolver.h"

struct resolver_service {
    unsigned n;
    unsigned begin;    /* first record to look up; wraps around */
    unsigned done;     /* finished or given up */
    int64_t until_ns;  /* deadline to begin a lookup */
    int error;         /* of the first failed host */
    unsigned n_failed; /* without unknown hosts */
    int errors[RESOLVER_ADDRESSES];
    struct srv_record records[RESOLVER_ADDRESSES];
};

/* Answer to a lookup; for a service grouped by record. */
struct resolver_found_addresses {
    unsigned n;
    int64_t ttl_ns;
    struct address list[RESOLVER_ADDRESSES];
    unsigned record[RESOLVER_ADDRESSES];
    unsigned weight[RESOLVER_ADDRESSES];
    unsigned level[RESOLVER_ADDRESSES];
    struct resolver_service *service; /* NULL: a host name */
};

/* Members belong to the one of the two tasks that is queued or running. */
struct resolver_name {
    struct timer lookup;
    struct task answer;
    struct promise answered; /* first answer; cancelled: no waiter */
    struct resolver *resolver;
    struct upstream *upstream;
    const struct upstream_server_conf *server;
    unsigned line;
    bool known;
    bool loops;     /* addresses failed the loop check (logged) */
    int error;      /* of the last lookup */
    int looked_up;  /* result to apply: 0 or -errno */
    uint64_t drawn; /* random state */
    unsigned begin; /* index to start at: where the last lookup ran out of time */
    struct resolver_found_addresses *found; /* of the current lookup */
    struct resolver_found_addresses *last;  /* last answer of a service */
};

struct resolver {
    struct resolver_conf conf;
    unsigned n_names;
    struct resolver_name names[];
};

#define RESOLVER_MORE 1

/*
 * resolver_look_up(name):
 * Start or continue a lookup. Fills ${name}->found, without addresses that fail the loop check.
 *
 * Thread: an executor thread
 * Owns:   the caller frees ${name}->found, also after an error
 * Errors: 0; RESOLVER_MORE (call again in a new task); as resolver_conf.lookup() and
 *         lookup_service(); -ELOOP (none passes the loop check); -ENOMEM
 */
int resolver_look_up(struct resolver_name *name) NODISCARD;

/*
 * resolver_ask(name, out, max, host, terms):
 * Look up a host; of more than ${max} addresses keep the same ones each time.
 *
 * Thread: an executor thread
 * Errors: number of addresses; as resolver_conf.lookup(); -ENOMEM
 */
int resolver_ask(const struct resolver_name *name, struct address *out, unsigned max,
                 const char *host, struct dns_terms *terms) NODISCARD;

/*
 * resolver_service_begin(name) / resolver_service_go_on(name):
 * Look up the SRV records; a host. The last one completes ${name}->found.
 *
 * Thread: an executor thread
 * Errors: as resolver_look_up()
 */
int resolver_service_begin(struct resolver_name *name) NODISCARD;
int resolver_service_go_on(struct resolver_name *name) NODISCARD;

/*
 * resolver_error_text(error):
 * Cause of a failed lookup, for the log.
 *
 * Thread: any
 */
const char *resolver_error_text(int error);

/*
 * resolver_free_found(found):
 * Free ${found} or NULL.
 *
 * Thread: any
 */
void resolver_free_found(struct resolver_found_addresses *found);

#endif
