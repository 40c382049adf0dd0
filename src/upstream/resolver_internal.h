/*
 * upstream/resolver_internal: shared by resolver.c (pauses, applying answers), resolver_lookup.c
 * (one lookup) and resolver_service.c (hosts of a service). Private to them.
 */
#ifndef UPSTREAM_RESOLVER_INTERNAL_H
#define UPSTREAM_RESOLVER_INTERNAL_H

#include "engine/promise.h"
#include "net/dns.h"
#include "net/srv.h"
#include "upstream/resolver.h"

/* SRV records of a service and the progress of their host lookups. */
struct resolver_service {
    unsigned n;
    unsigned begin;    /* first record looked up; wraps around */
    unsigned done;     /* finished, successful or not */
    int64_t until_ns;  /* deadline to begin a lookup */
    int error;         /* of the first failed host; 0: none */
    unsigned n_failed; /* not counting unknown hosts */
    int errors[RESOLVER_ADDRESSES];
    struct srv_record records[RESOLVER_ADDRESSES];
};

/* Answer to a lookup; for a service grouped by record. */
struct resolver_found {
    unsigned n;
    int64_t ttl_ns;
    struct address list[RESOLVER_ADDRESSES];
    unsigned record[RESOLVER_ADDRESSES]; /* source of each address */
    unsigned weight[RESOLVER_ADDRESSES];
    unsigned level[RESOLVER_ADDRESSES];
    struct resolver_service *service; /* NULL: a host name */
};

/*
 * The name of one line. At most one of its two tasks is queued or running, and that one owns the
 * members below.
 */
struct resolver_name {
    struct timer lookup;
    struct task answer;
    struct promise answered; /* first answer; cancelled: no waiter is left */
    struct resolver *resolver;
    struct upstream *upstream;
    const struct upstream_server_conf *server;
    unsigned line;
    bool known;
    bool loops;                   /* the last answer had looping addresses, which was logged */
    int error;                    /* of the last lookup; 0: none */
    int looked_up;                /* lookup to be applied: 0 or -errno */
    uint64_t drawn;               /* random state */
    unsigned begin;               /* first record: where the last lookup timed out */
    struct resolver_found *found; /* of the current lookup */
    struct resolver_found *last;  /* of a service: last answer applied */
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
 * Thread: one of the executor
 * Owns:   the caller frees ${name}->found, also after an error
 * Errors: 0; RESOLVER_MORE (call again in a new task); as resolver_conf.lookup() and
 *         lookup_service(); -ELOOP (no address passes the loop check); -ENOMEM
 */
int resolver_look_up(struct resolver_name *name) NODISCARD;

/*
 * resolver_ask(name, out, max, host, terms):
 * Look up the addresses of a host; of more than ${max} keep the same ones each time.
 *
 * Thread: one of the executor
 * Errors: number of addresses; as resolver_conf.lookup(); -ENOMEM
 */
int resolver_ask(const struct resolver_name *name, struct address *out, unsigned max,
                 const char *host, struct dns_terms *terms) NODISCARD;

/*
 * resolver_service_begin(name) / resolver_service_go_on(name):
 * Look up the SRV records; one of their hosts. The last host completes ${name}->found.
 *
 * Thread: one of the executor
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
 * Free an answer; NULL is allowed.
 *
 * Thread: any
 */
void resolver_free_found(struct resolver_found *found);

#endif
