/*
 * limits/admission: access control by client address: bans, then ACL, then limits per client. One
 * per listener generation.
 *
 * Called once per client: by the boss after accept, or by the worker after a PROXY header named the
 * client (session_admit()).
 *
 *   admission_refuses -> true: banned, disconnect
 *   admission_enter -> ADMIT: the session keeps the ticket until admission_leave
 *                   -> CLOSE, RESET: disconnect; do not call admission_leave
 *
 * A refused client has offended, and so has one for which admission_offend() is called.
 */
#ifndef LIMITS_ADMISSION_H
#define LIMITS_ADMISSION_H

#include "base/must.h"
#include "limits/ban_table.h"
#include "limits/client_table.h"
#include "net/address.h"
#include "stats/session_reason.h"

struct figure_object;
struct figure_visitor;
struct acl_conf;
struct admission;
struct counters_set;

enum admission_verdict { ADMISSION_ADMIT, ADMISSION_CLOSE, ADMISSION_RESET };

/* An admitted client. Zeroed: no client, or no limits. */
struct admission_ticket {
    struct client_table *of;
    struct client *client; /* NULL: not counted */
};

/* A [limits NAME], of listeners that share its tables. */
struct admission_share {
    const char *name;       /* must outlive the admission; NULL: none */
    struct admission *with; /* the first's, else one that has the tables before; NULL: none */
    bool is_first;          /* of the listeners in the configuration: shows the tables */
};

struct admission_conf {
    const char *listener;          /* for logs; must outlive the admission */
    const struct acl_conf *access; /* NULL: allow all; see acl_create() */
    enum admission_verdict on_deny;
    struct client_table_conf clients;
    struct ban_conf ban;
    const struct cidr_list *exempt;  /* clients that are never banned */
    const struct cidr_list *proxies; /* nor these: proxies of other clients; NULL: none */
    enum quota_over over;            /* QUOTA_OVER_WAIT resets: the client is already accepted */
    struct admission_share share;
    const struct admission *before; /* the admission that this one replaces; NULL: none */
};

/*
 * admission_create(out, conf):
 * Create the access control of a listener. It shares the counters of conf->before and, if only the
 * limits differ, its tables, or those of share.with.
 *
 * Owns:   ${conf} is copied
 * Errors: 0; as acl_create(), client_table_create() and ban_table_create()
 */
int admission_create(struct admission **out, const struct admission_conf *conf) NODISCARD;

/*
 * admission_begin(ad, now_ns):
 * Replace conf->before: set the limits of the tables, and copy the bans of the tables before.
 * The first of listeners that share tables must be the first to begin.
 *
 * Thread: any, one at a time
 */
void admission_begin(struct admission *ad, int64_t now_ns);

/*
 * admission_carry_over(ad, ticket, client):
 * Move ${ticket} to ${ad}: count ${client} there, even over the limits, and no longer in the former
 * admission.
 */
void admission_carry_over(struct admission *ad, struct admission_ticket *ticket,
                          const struct address *client);

/*
 * admission_refuses(ad, client):
 * Is ${client} banned? Then count the connection. In a dry run admission_enter() looks instead.
 */
bool admission_refuses(struct admission *ad, const struct address *client);

/*
 * admission_offend(ad, client, offence):
 * Count an offence of ${client}, unless it is exempt. If this begins a ban, log it.
 */
void admission_offend(struct admission *ad, const struct address *client, enum ban_offence offence);

/* admission_bans(ad): the table of bans, which lives as long as ${ad}; NULL: none. */
struct ban_table *admission_bans(const struct admission *ad);

/* admission_shared(ad): return the name of the [limits NAME] that has the tables; NULL: none. */
const char *admission_shared(const struct admission *ad);

/*
 * admission_enter(ad, ticket, client, reason):
 * Decide whether to serve ${client}. ADMISSION_ADMIT fills ${ticket}, which must be empty. A
 * refusal sets ${reason} to SESSION_LIMIT.
 */
enum admission_verdict admission_enter(struct admission *ad, struct admission_ticket *ticket,
                                       const struct address *client, enum session_reason *reason);

/* admission_deny(ad, client): count ${client}, which a route refuses; return what on_deny says. */
enum admission_verdict admission_deny(struct admission *ad, const struct address *client);

/* admission_leave(ticket): count the client out and empty ${ticket}. No-op if it is empty. */
void admission_leave(struct admission_ticket *ticket);

/*
 * admission_add_counters(ad, set):
 * Add the counters of ACL and per-client limits to ${set}, so that the next process can continue
 * them.
 *
 * Thread: any; ${ad} must outlive ${set}
 */
void admission_add_counters(const struct admission *ad, struct counters_set *set);

/*
 * admission_figures(ad, object, v) / admission_figures_shared(ad, v):
 * Show the figures of the ACL, the per-client limits and bans; ${object} is the listener / those of
 * tables that listeners share, once for all of them.
 */
void admission_figures(const struct admission *ad, const struct figure_object *object,
                       struct figure_visitor *v);
void admission_figures_shared(const struct admission *ad, struct figure_visitor *v);

/* admission_destroy(ad): free ${ad} or NULL. Thread: any, when no thread uses ${ad} */
void admission_destroy(struct admission *ad);

#endif
