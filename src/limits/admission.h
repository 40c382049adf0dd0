/*
 * limits/admission: per-client access control of a listener: the ACL, then the per-client limits.
 *
 * Asked once for each client address: by the boss after accept with the peer's, or, when a trusted
 * proxy names the client, by the worker once the name is known (session_admit()). The total limits
 * are checked before accept: see server/listener.
 *
 *   admission_enter -> ADMIT: the session keeps the ticket and ends it with admission_leave, once
 *                   -> CLOSE, RESET: nothing to leave; the client is disconnected
 */
#ifndef LIMITS_ADMISSION_H
#define LIMITS_ADMISSION_H

#include "base/must.h"
#include "net/address.h"
#include "limits/client_table.h"
#include "stats/session_reason.h"

struct acl_conf;
struct admission;

enum admission_verdict { ADMISSION_ADMIT, ADMISSION_CLOSE, ADMISSION_RESET };

/* An admitted client; zeroed: none. */
struct admission_ticket {
    struct admission *of;
    struct client *client; /* NULL: not counted */
};

struct admission_conf {
    const char *listener;           /* name, for logs; borrowed */
    const struct acl_conf *access;  /* borrowed; NULL: all clients are allowed */
    enum admission_verdict on_deny; /* for clients the ACL denies */
    struct client_table_conf clients;
    enum quota_over over; /* QUOTA_OVER_WAIT resets: an accepted client cannot wait */
};

/*
 * admission_create(out, conf):
 * Create the admission control of a listener.
 *
 * Thread: main
 * Owns:   the caller owns ${out}; ${conf} is copied
 * Errors: 0; as acl_create() and client_table_create()
 */
int admission_create(struct admission **out, const struct admission_conf *conf) NODISCARD;

/*
 * admission_enter(ad, ticket, client, reason):
 * Decide whether to serve ${client}. ADMISSION_ADMIT fills ${ticket}, which must be empty;
 * otherwise ${reason} says why not.
 *
 * Thread: any
 * Owns:   the caller ends ${ticket} with admission_leave()
 */
enum admission_verdict admission_enter(struct admission *ad, struct admission_ticket *ticket,
                                       const struct address *client, enum session_reason *reason);

/*
 * admission_leave(ticket):
 * Uncount the client and empty ${ticket}; an empty ticket is allowed.
 *
 * Thread: any
 */
void admission_leave(struct admission_ticket *ticket);

/*
 * admission_log_stats(ad):
 * Log the counters of the ACL and of the per-client limits, when configured.
 *
 * Thread: any
 */
void admission_log_stats(const struct admission *ad);

/*
 * admission_destroy(ad):
 * Free it; no ticket is in use. NULL is allowed.
 *
 * Thread: main
 */
void admission_destroy(struct admission *ad);

#endif
