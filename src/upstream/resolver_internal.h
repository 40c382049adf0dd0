/* upstream/resolver_internal: shared by the files of upstream/resolver. */
#ifndef UPSTREAM_RESOLVER_INTERNAL_H
#define UPSTREAM_RESOLVER_INTERNAL_H

#include "engine/promise.h"
#include "net/dns.h"
#include "net/srv.h"
#include "upstream/resolver.h"

struct resolver_service {
    unsigned n;
    unsigned begin;    /* first record to look up; wraps around */
    unsigned done;     /* records finished or given up */
    int64_t until_ns;  /* no lookup begins after this time */
    int error;         /* error of the first failed host */
    unsigned n_failed; /* hosts whose lookup failed, without hosts that do not exist */
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

/* Owned by the control loop, but a lookup under way owns the members marked (L). */
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
    bool is_removed;   /* removed while its lookup was under way */
    bool is_kept;      /* kept by the current commit */
    bool has_answer;   /* an answer is not applied yet */
    bool checks_loops; /* the listeners changed since its lookup: look for proxy loops again */
    bool known;
    bool late; /* the first answer failed or was not in time */
    int error; /* of the last answer */
    int64_t answered_at_ns;
    uint64_t drawn; /* random state */
    int looked_up;  /* (L) result to apply: 0 or -errno */
    bool loops;     /* (L) addresses failed the loop check (logged) */
    unsigned begin; /* (L) index to start at: where the last lookup ran out of time */
    struct resolver_found_addresses *found; /* (L) of the current lookup */
    struct resolver_found_addresses *last;  /* (L) last answer of a service */
    /* Constant. */
    enum upstream_names names;
    const char *upstream_name;
    const char *id;
    const char *word; /* ADDRESS of the line */
};

struct resolver {
    struct resolver_conf conf;
    struct list names;
    struct list removed; /* names with lookups under way */
    uint64_t n_added;
    struct proxy_loop *listeners;   /* a reference; NULL: none yet */
    struct resolver_change *change; /* NULL: none */
    struct task start;
    const struct resolver_next *first; /* of resolver_start() */
    struct promise started;
};

/* A name of the next configuration. */
struct resolver_step {
    struct resolver_name *name;
    unsigned position; /* of its line */
    bool is_new;
    bool is_required;
};

struct resolver_change {
    struct resolver *resolver;
    struct resolver_next next;
    struct timer timer; /* calls ready() */
    unsigned n_waiting; /* new names without an answer */
    bool is_ready;
    bool is_first; /* begun by resolver_start() */
    unsigned n;
    struct resolver_step steps[];
};

#define RESOLVER_MORE 1

/*
 * resolver_name_create(out, r, up, conf):
 * Create the name of a line; it is in no list.
 *
 * Thread: control loop
 * Errors: 0; -ENOMEM
 */
int resolver_name_create(struct resolver_name **out, struct resolver *r, struct upstream *up,
                         const struct upstream_server_conf *conf) NODISCARD;

/*
 * resolver_name_free(name) / resolver_name_remove(name):
 * Free ${name}, which is in no list and whose timers have ended / unlist ${name}, and free it now
 * or at the end of its lookup.
 *
 * Thread: control loop; resolver_name_free(): also main while it does not run
 */
void resolver_name_free(struct resolver_name *name);
void resolver_name_remove(struct resolver_name *name);

/*
 * resolver_name_look_up(name, listeners):
 * Begin a lookup.
 *
 * Thread: control loop
 * Errors: 0; as executor_schedule()
 */
int resolver_name_look_up(struct resolver_name *name, struct proxy_loop *listeners) NODISCARD;

/*
 * resolver_name_use(name) / resolver_name_use_soon(name):
 * Apply the answer and schedule the next lookup / do so in a task of its own, because many names
 * together take long.
 *
 * Thread: control loop
 */
void resolver_name_use(struct resolver_name *name);
void resolver_name_use_soon(struct resolver_name *name);

/*
 * resolver_name_hurry(name, check_loops):
 * Apply new intervals to the pause of a committed name; with ${check_loops}, look up the name at
 * once if its addresses lead back to the new listeners.
 *
 * Thread: control loop
 */
void resolver_name_hurry(struct resolver_name *name, bool check_loops);

/*
 * resolver_name_places(name, line, places):
 * Fill ${places} from the answer, for a line of several servers; returns how many.
 *
 * Thread: control loop
 * Owns:   the places point into the answer
 */
unsigned resolver_name_places(const struct resolver_name *name,
                              const struct upstream_server_conf *line,
                              struct membership_place *places);

/*
 * resolver_answered(name):
 * Record the first answer of the new ${name}.
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
 * resolver_ask(name, out, max, host, terms):
 * Look up a host. If it has more than ${max} addresses, always choose the same ones.
 *
 * Thread: an executor thread
 * Errors: number of addresses; as resolver_conf.lookup(); -ENOMEM
 */
int resolver_ask(const struct resolver_name *name, struct address *out, unsigned max,
                 const char *host, struct dns_terms *terms) NODISCARD;

/*
 * resolver_service_begin(name) / resolver_service_go_on(name):
 * Look up the SRV records / look up the next of their hosts; the last host completes
 * ${name}->found.
 *
 * Thread: an executor thread
 * Errors: as resolver_look_up()
 */
int resolver_service_begin(struct resolver_name *name) NODISCARD;
int resolver_service_go_on(struct resolver_name *name) NODISCARD;

/*
 * resolver_error_text(error) / resolver_free_found(found):
 * Cause of a failed lookup, for the log / free ${found} or NULL.
 *
 * Thread: any
 */
const char *resolver_error_text(int error);
void resolver_free_found(struct resolver_found_addresses *found);

#endif
