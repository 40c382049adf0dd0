/*
 * limits/admission: access control by client: ACL, then per-client limits. One per generation.
 *
 * Called once per client: by the boss after accept, or by the worker when a trusted proxy has named
 * the client (session_admit()).
 *
 *   admission_enter -> ADMIT: the session keeps the ticket until admission_leave
 *                   -> CLOSE, RESET: disconnect, without admission_leave
 */
#ifndef LIMITS_ADMISSION_H
#define LIMITS_ADMISSION_H

#include "base/must.h"
#include "limits/client_table.h"
#include "net/address.h"
#include "stats/session_reason.h"

struct figure_object;
struct figure_visitor;
struct acl_conf;
struct admission;
struct counters_set;

enum admission_verdict { ADMISSION_ADMIT, ADMISSION_CLOSE, ADMISSION_RESET };

/* An admitted client; zeroed: none. */
struct admission_ticket {
    struct client_table *of;
    struct client *client; /* NULL: not counted */
};

struct admission_conf {
    const char *listener;          /* for logs; must outlive the admission */
    const struct acl_conf *access; /* NULL: allow all; see acl_create() */
    enum admission_verdict on_deny;
    struct client_table_conf clients;
    enum quota_over over;           /* QUOTA_OVER_WAIT resets: an accepted client cannot wait */
    const struct admission *before; /* the admission that this one replaces; NULL: none */
};

/*
 * admission_create(out, conf):
 * Create the access control of a listener. It shares the counters of conf->before, and its client
 * table if the configuration allows.
 *
 * Thread: any
 * Owns:   ${conf} is copied
 * Errors: 0; as acl_create() and client_table_create()
 */
int admission_create(struct admission **out, const struct admission_conf *conf) NODISCARD;

/*
 * admission_begin(ad, now_ns):
 * Use ${ad} in place of conf->before, whose counters it continues.
 *
 * Thread: any, one at a time
 */
void admission_begin(struct admission *ad, int64_t now_ns);

/*
 * admission_carry_over(ad, ticket, client):
 * Count ${client} in ${ad}, even over its limits, and no longer in the admission of ${ticket}.
 *
 * Thread: any
 */
void admission_carry_over(struct admission *ad, struct admission_ticket *ticket,
                          const struct address *client);

/*
 * admission_enter(ad, ticket, client, reason):
 * Decide whether to serve ${client}. ADMISSION_ADMIT fills the empty ${ticket}, for
 * admission_leave(); else ${reason} says why not.
 *
 * Thread: any
 */
enum admission_verdict admission_enter(struct admission *ad, struct admission_ticket *ticket,
                                       const struct address *client, enum session_reason *reason);

/*
 * admission_leave(ticket):
 * Count the client out and empty ${ticket}. No-op if it is empty.
 *
 * Thread: any
 */
void admission_leave(struct admission_ticket *ticket);

/*
 * admission_add_counters(ad, set):
 * Add the ACL's counters to ${set}, so that another process can continue them.
 *
 * Thread: any; ${ad} must outlive ${set}
 */
void admission_add_counters(const struct admission *ad, struct counters_set *set);

/*
 * admission_figures(ad, object, v):
 * Visit the counters of ACL and per-client limits of the listener ${object}.
 *
 * Thread: any
 */
void admission_figures(const struct admission *ad, const struct figure_object *object,
                       struct figure_visitor *v);

/*
 * admission_destroy(ad):
 * Free ${ad} or NULL.
 *
 * Thread: any, when no thread uses ${ad}
 */
void admission_destroy(struct admission *ad);

#endif
