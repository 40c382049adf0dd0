/*
 * upstream/resolver_internal: what the parts of the resolver share: resolver.c (the pauses, and
 * what an answer changes), resolver_lookup.c (a lookup), resolver_service.c (the hosts of a
 * service). Private to them.
 */
#ifndef UPSTREAM_RESOLVER_INTERNAL_H
#define UPSTREAM_RESOLVER_INTERNAL_H

#include "engine/promise.h"
#include "net/dns.h"
#include "net/srv.h"
#include "upstream/resolver.h"

/* The records of a service, and how far the lookups of their hosts have come. */
struct resolver_service {
    unsigned n;
    unsigned begin;    /* the first that was looked up; after the last record comes the first */
    unsigned done;     /* looked up so far, or given up */
    int64_t until_ns;  /* no lookup begins later */
    int error;         /* of the first host that failed; 0: none did */
    unsigned n_failed; /* hosts that failed, other than being unknown */
    int errors[RESOLVER_ADDRESSES];
    struct srv_record records[RESOLVER_ADDRESSES];
};

/* The answer to a lookup: of a service, the addresses of one record after those of another. */
struct resolver_found {
    unsigned n;
    int64_t ttl_ns;
    struct address list[RESOLVER_ADDRESSES];
    unsigned record[RESOLVER_ADDRESSES]; /* where each comes from */
    unsigned weight[RESOLVER_ADDRESSES];
    unsigned level[RESOLVER_ADDRESSES];
    struct resolver_service *service; /* NULL: a host name */
};

/*
 * A line and the name in it. One of its two tasks waits, runs, or both are done with: what follows
 * has one owner.
 */
struct resolver_name {
    struct timer lookup;
    struct task answer;
    struct promise answered; /* the first time; cancelled: nobody waits for it any more */
    struct resolver *resolver;
    struct upstream *upstream;
    const struct upstream_server_conf *server;
    unsigned line;
    bool known;
    bool loops;     /* some address of the last answer leads back, which was told */
    int error;      /* of the last lookup; 0: it went well, or there was none yet */
    int looked_up;  /* of the one that is to be answered: 0, or -errno */
    uint64_t drawn; /* random numbers */
    unsigned begin; /* the record to begin with: where the last lookup ran out of time */
    struct resolver_found *found; /* by the lookup under way, or that is to be answered */
    struct resolver_found *last;  /* of a service: the last answer that was used */
};

struct resolver {
    struct resolver_conf conf;
    unsigned n_names;
    struct resolver_name names[];
};

#define RESOLVER_MORE 1

/*
 * resolver_look_up(name):
 * Begin, or go on, to find out what ${name} stands for: ${name}->found, without what would lead
 * back to us.
 *
 * Thread: one of the executor
 * Owns:   the caller frees ${name}->found, also after an error
 * Errors: 0; RESOLVER_MORE (call it again, after others had their turn); as resolver_conf.lookup()
 *         and lookup_service(); -ELOOP (all of it would lead back); -ENOMEM
 */
int resolver_look_up(struct resolver_name *name) NODISCARD;

/*
 * resolver_ask(name, out, max, host, terms):
 * Look up the addresses of a host; of more than ${max} the same ones are kept each time.
 *
 * Thread: one of the executor
 * Errors: number of addresses; as resolver_conf.lookup(); -ENOMEM
 */
int resolver_ask(const struct resolver_name *name, struct address *out, unsigned max,
                 const char *host, struct dns_terms *terms) NODISCARD;

/*
 * resolver_service_begin(name) / resolver_service_go_on(name):
 * Look up the SRV records of ${name}; look up one of their hosts. The last one makes ${name}->found
 * complete.
 *
 * Thread: one of the executor
 * Errors: as resolver_look_up()
 */
int resolver_service_begin(struct resolver_name *name) NODISCARD;
int resolver_service_go_on(struct resolver_name *name) NODISCARD;

/*
 * resolver_error_text(error):
 * Why a lookup failed, for the log.
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
