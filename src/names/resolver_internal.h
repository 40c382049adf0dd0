/* names/resolver_internal: names, lookups and changes of names/resolver. */
#ifndef NAMES_RESOLVER_INTERNAL_H
#define NAMES_RESOLVER_INTERNAL_H

#include "names/resolver.h"
#include "names/resolver_cache.h"
#include "net/dns.h"
#include "net/lookup_share.h"
#include "net/name_servers.h"
#include "net/srv.h"

struct resolver_service {
    unsigned n;                     /* records */
    unsigned begin;                 /* first record to look up, in circular order */
    unsigned done;                  /* records finished or given up */
    int64_t until_ns;               /* no host lookup begins after this time */
    int error;                      /* of the first failed host lookup; 0: none */
    unsigned n_failed;              /* failed host lookups, without nonexistent hosts */
    int errors[RESOLVER_ADDRESSES]; /* by record; 0: none */
    struct srv_record records[RESOLVER_ADDRESSES];
};

/* Answer to a lookup. Addresses of a service are grouped by SRV record. */
struct resolver_found_addresses {
    unsigned n;
    int64_t ttl_ns;
    unsigned failed; /* enum resolve_family: whose lookup failed, of a host */
    int error;       /* why */
    unsigned kept;   /* of these: with addresses of the answer before */
    struct address list[RESOLVER_ADDRESSES];
    unsigned record[RESOLVER_ADDRESSES]; /* index in service->records */
    unsigned weight[RESOLVER_ADDRESSES];
    unsigned level[RESOLVER_ADDRESSES];
    struct resolver_service *service; /* NULL: a host name */
};

/*
 * A host name or SRV service of a server line. Owned by the control loop, but a lookup under way
 * owns the members marked (L).
 */
struct resolver_name {
    struct timer lookup; /* (L) */
    struct task answer;
    struct timer pause; /* until the next lookup */
    struct list link;
    struct resolver *resolver;
    struct resolver_change *change; /* the change that adds the name; NULL: committed */
    struct upstream *upstream;
    struct server_line *line;     /* a reference; NULL: not committed yet */
    struct proxy_loop *listeners; /* a reference, for the lookup under way */
    bool is_under_way;
    bool is_removed;      /* removed while its lookup was under way */
    bool is_kept;         /* kept by the current commit */
    bool has_answer;      /* an answer waits to be applied */
    bool checks_loops;    /* the listeners changed since the lookup: check for proxy loops again */
    bool known;           /* an answer has been applied */
    bool late;            /* a lookup failed, or the first answer was not in time */
    int error;            /* last result: 0 or -errno */
    unsigned families;    /* enum resolve_family: of the addresses in use */
    unsigned kept;        /* of these: whose last lookup failed */
    int64_t denied_at_ns; /* first answer that the name does not exist; 0: none since a success */
    int64_t due_at_ns;    /* (L) start of the current lookup */
    int64_t moving_until_ns; /* old servers stay until new ones are checked; 0: none stay */
    int64_t answered_at_ns;
    uint64_t drawn; /* counter for random numbers */
    int looked_up;  /* (L) result to apply: 0 or -errno */
    bool loops;     /* (L) the last lookup found a proxy loop; it is not logged again */
    unsigned begin; /* (L) SRV record to begin with: the last lookup ran out of time there */
    struct resolver_found_addresses *found; /* (L) answer of the current lookup */
    struct resolver_found_addresses *last;  /* (L) last answer of a service */
    struct resolver_cache_entry *cached;    /* a use */
    /* Constant. */
    enum upstream_names names;
    struct name_servers *servers; /* a reference; NULL: those of resolv.conf */
    const char *upstream_name;
    const char *id;
    const char *word;  /* ADDRESS of the server line */
    const char *shown; /* in the log: `word`, and the [resolver NAME] that is asked */
};

struct resolver {
    struct resolver_conf conf;
    struct list names;
    struct list removed; /* names whose lookup is still under way */
    struct resolver_cache cache;
    struct lookup_share share;
    struct dns_preference preference;
    uint64_t n_added;
    struct proxy_loop *listeners;   /* a reference; NULL: none yet */
    struct resolver_change *change; /* under way; NULL: none */
};

/* A name of the next configuration. */
struct resolver_step {
    struct resolver_name *name;
    unsigned position; /* of the name's server line */
    bool is_new;
    bool is_required;
    bool is_used;  /* its servers may get sessions */
    bool is_alone; /* no server of the upstream has an address without names */
};

struct resolver_change {
    struct resolver *resolver;
    struct resolver_next next;
    struct timer timer; /* calls ready() */
    unsigned n_waiting; /* new names without an answer */
    bool is_ready;
    unsigned n;
    struct resolver_step steps[];
};

#define RESOLVER_MORE 1

/*
 * resolver_name_create(out, r, up, conf, servers):
 * Create the name of the line ${conf}, in no list yet.
 *
 * Thread: control loop
 * Errors: 0; -ENOMEM
 */
int resolver_name_create(struct resolver_name **out, struct resolver *r, struct upstream *up,
                         const struct upstream_server_conf *conf,
                         struct name_servers *servers) NODISCARD;

/*
 * resolver_name_free(name) / resolver_name_remove(name):
 * Free ${name}, which no timer or lookup uses / unlink ${name} and free it, at the end of its
 * lookup if one is under way.
 *
 * Thread: control loop; resolver_name_free(): also main, after the control loop
 */
void resolver_name_free(struct resolver_name *name);
void resolver_name_remove(struct resolver_name *name);

/*
 * resolver_name_look_up(name, listeners):
 * Begin a lookup; ${listeners} serve the loop check.
 *
 * Thread: control loop
 * Errors: 0; as executor_schedule()
 */
int resolver_name_look_up(struct resolver_name *name, struct proxy_loop *listeners) NODISCARD;

/*
 * resolver_recall(name, listeners):
 * Use the cached answer as that of a lookup, without addresses that fail the loop check. False:
 * there is none.
 *
 * Thread: control loop
 */
bool resolver_recall(struct resolver_name *name, struct proxy_loop *listeners) NODISCARD;

/*
 * resolver_name_retry_ns(name):
 * Return the longest pause after a failed lookup.
 *
 * Thread: control loop
 */
int64_t resolver_name_retry_ns(const struct resolver_name *name);

/*
 * resolver_hold_families(name):
 * Add to ${name}->found the last addresses of each family whose lookup failed.
 *
 * Thread: control loop
 */
void resolver_hold_families(struct resolver_name *name);

/*
 * resolver_hold_found(name):
 * Note that ${name}->found is in use; log when a family begins to fail, or no longer fails.
 *
 * Thread: control loop
 */
void resolver_hold_found(struct resolver_name *name);

/*
 * resolver_hold_left_ns(name) / resolver_hold_end(name):
 * Return how long the addresses of ${name} stay in use, which does not exist: resolve_hold after
 * the first such answer / remove them, and log it.
 *
 * Thread: control loop
 * Errors: 0; as membership_update(): they stay
 */
int64_t resolver_hold_left_ns(struct resolver_name *name);
int resolver_hold_end(struct resolver_name *name) NODISCARD;

/*
 * resolver_log_known(name, moved) / resolver_log_failure(name, error):
 * Log the addresses of ${name}->found, which are others if ${moved} / log a failed lookup.
 *
 * Thread: control loop
 */
void resolver_log_known(const struct resolver_name *name, bool moved);
void resolver_log_failure(const struct resolver_name *name, int error);

/*
 * resolver_name_use(name) / resolver_name_use_soon(name):
 * Apply the answer and schedule the next lookup / do so in a task of its own, because many names
 * take long.
 *
 * Thread: control loop
 */
void resolver_name_use(struct resolver_name *name);
void resolver_name_use_soon(struct resolver_name *name);

/*
 * resolver_name_hurry(name, check_loops):
 * Apply new intervals to the pause of a committed name. With ${check_loops}, look up the name at
 * once if its addresses lead back to the new listeners.
 *
 * Thread: control loop
 */
void resolver_name_hurry(struct resolver_name *name, bool check_loops);

/*
 * resolver_name_places(name, line, places):
 * Fill ${places} from the answer, one place for each server of ${line}; return their number.
 *
 * Thread: control loop
 * Owns:   the places point into the answer
 */
unsigned resolver_name_places(const struct resolver_name *name,
                              const struct upstream_server_conf *line,
                              struct membership_place *places);

/*
 * resolver_is_known(name) / resolver_look_at_all(change):
 * Has ${name} an answer with addresses? / log new names without one; refuse ${change} if it must
 * not be used without them.
 *
 * Thread: control loop
 * Errors: 0; -ENODATA
 */
bool resolver_is_known(const struct resolver_name *name);
int resolver_look_at_all(const struct resolver_change *change) NODISCARD;

/*
 * resolver_answered(name):
 * Count the first answer of the new ${name}; ready() follows the last one.
 *
 * Thread: control loop
 */
void resolver_answered(struct resolver_name *name);

/*
 * resolver_look_up(name):
 * Start or continue a lookup, which fills ${name}->found, without addresses that fail the loop
 * check.
 *
 * Thread: an executor thread
 * Owns:   the caller frees ${name}->found, also after an error
 * Errors: 0; RESOLVER_MORE (call again in a new task); as resolver_conf.lookup() and
 *         lookup_service(); -ELOOP (no address passes the loop check); -ENOMEM
 */
int resolver_look_up(struct resolver_name *name) NODISCARD;

/*
 * resolver_terms(name, timeout_s):
 * Return the terms of a query for ${name}.
 *
 * Thread: an executor thread
 */
struct dns_terms resolver_terms(const struct resolver_name *name, unsigned timeout_s);

/*
 * resolver_ask(name, out, max, host, terms):
 * Look up a host. If it has more than ${max} addresses, each lookup keeps the same ones.
 *
 * Thread: an executor thread
 * Errors: number of addresses; as resolver_conf.lookup(); -ENOMEM
 */
int resolver_ask(const struct resolver_name *name, struct address *out, unsigned max,
                 const char *host, struct dns_terms *terms) NODISCARD;

/*
 * resolver_service_begin(name) / resolver_service_go_on(name):
 * Look up the SRV records / look up the host of the next record; after the last host, complete
 * ${name}->found.
 *
 * Thread: an executor thread
 * Errors: as resolver_look_up()
 */
int resolver_service_begin(struct resolver_name *name) NODISCARD;
int resolver_service_go_on(struct resolver_name *name) NODISCARD;

/*
 * resolver_filter_loops(name, listeners):
 * Remove addresses of ${name}->found that could lead back to its upstream.
 *
 * Thread: owner of ${name}->found
 * Errors: 0; -ELOOP (no address is left)
 */
int resolver_filter_loops(struct resolver_name *name, struct proxy_loop *listeners) NODISCARD;

/*
 * resolver_keep_one(f):
 * Keep as many addresses as one server can have.
 *
 * Thread: owner of ${f}
 * Errors: 0; -ENOMEM
 */
int resolver_keep_one(struct resolver_found_addresses *f) NODISCARD;

/*
 * resolver_service_weigh(f):
 * Compute weights and levels of all addresses from their records.
 *
 * Thread: owner of ${f}
 */
void resolver_service_weigh(struct resolver_found_addresses *f);

/*
 * resolver_error_text(error) / resolver_free_found(found):
 * Return the cause of a failed lookup, for the log / free ${found} or NULL.
 */
const char *resolver_error_text(int error);
void resolver_free_found(struct resolver_found_addresses *found);

#endif
