/*
 * limits/admission: whether a client is served, by what its address is known for.
 *
 * A listener has one. It is asked once for each client, with the address that stands for it: by the
 * boss right after accept, with the peer's; or, when the peer is a proxy that names the client, by
 * the worker as soon as it has (session_admit()). How many clients there are in all is not asked
 * here, but before accept: see server/listener.
 *
 *   admission_enter -> ADMIT: the session keeps the ticket, and its end is admission_leave, once
 *                   -> CLOSE, RESET: nothing to leave; the client is sent away
 */
#ifndef LIMITS_ADMISSION_H
#define LIMITS_ADMISSION_H

#include "base/must.h"
#include "net/address.h"
#include "limits/client_table.h"
#include "stats/session_reason.h"

struct acl_conf;
struct admission;

enum admission_verdict {
    ADMISSION_ADMIT,
    ADMISSION_CLOSE, /* end of file */
    ADMISSION_RESET
};

/* A client's place; zeroed it is none. */
struct admission_ticket {
    struct admission *of;
    struct client *client; /* NULL: it is not counted */
};

struct admission_conf {
    const char *listener;           /* name, for logs; borrowed */
    const struct acl_conf *access;  /* borrowed; NULL: everybody may come in */
    enum admission_verdict on_deny; /* for those that may not */
    struct client_table_conf clients;
    enum quota_over
        over; /* QUOTA_OVER_WAIT: a client that was accepted cannot wait, and is reset */
};

/*
 * admission_create(out, conf):
 * One that has admitted nobody yet.
 *
 * Thread: main
 * Owns:   the caller owns ${out}; ${conf} is copied
 * Errors: 0; as acl_create() and client_table_create()
 */
int admission_create(struct admission **out, const struct admission_conf *conf) NODISCARD;

/*
 * admission_enter(ad, ticket, client, reason):
 * Is ${client} served? If so ${ticket}, which is none, is its place, until admission_leave(). If
 * not ${reason} tells why.
 *
 * Thread: any
 * Owns:   the caller has the place
 */
enum admission_verdict admission_enter(struct admission *ad, struct admission_ticket *ticket,
                                       const struct address *client, enum session_reason *reason);

/*
 * admission_leave(ticket):
 * Give the place back; ${ticket} is none then. Nothing happens if it is none.
 *
 * Thread: any
 */
void admission_leave(struct admission_ticket *ticket);

/*
 * admission_log_stats(ad):
 * Write what was counted to the log, if there are rules that somebody may fall under, and limits
 * for each client.
 *
 * Thread: any
 */
void admission_log_stats(const struct admission *ad);

/*
 * admission_destroy(ad):
 * Free it; nobody is inside. NULL is allowed.
 *
 * Thread: main
 */
void admission_destroy(struct admission *ad);

#endif
