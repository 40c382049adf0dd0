/* server/server_bans: the clients that are banned, and an end to bans. */
#ifndef SERVER_SERVER_BANS_H
#define SERVER_SERVER_BANS_H

#include <stdbool.h>

#include "base/must.h"
#include "limits/ban.h"

struct cidr;
struct server;

/* Longest name of a listener, or of a [limits NAME], with NUL. */
#define SERVER_BANS_OWNER_BYTES 64

/* Who bans: a listener, or a [limits NAME] for all its listeners. The other one is NULL. */
struct server_bans_owner {
    const char *listener, *limits;
};

/* Which bans. */
struct server_bans_filter {
    const char *listener;     /* that refuses the client, perhaps with others; NULL: any */
    const char *limits;       /* NULL: any */
    const struct cidr *block; /* that has the client, or that the client has; NULL: any */
};

/*
 * server_bans_each(sv, filter, visit, cookie):
 * Visit copies of bans, those of one owner after those of another.
 *
 * Errors: 0; -ENOMEM
 */
typedef void server_bans_visit(void *cookie, const struct server_bans_owner *owner,
                               const struct ban *ban);
int server_bans_each(struct server *sv, const struct server_bans_filter *filter,
                     server_bans_visit *visit, void *cookie) NODISCARD;

/*
 * server_bans_each_share(sv, visit, cookie):
 * Visit each listener that shares a [limits NAME]: ${owner} has both.
 *
 * Errors: 0; -ENOMEM
 */
int server_bans_each_share(struct server *sv,
                           void (*visit)(void *cookie, const struct server_bans_owner *owner),
                           void *cookie) NODISCARD;

/*
 * server_bans_lift(sv, filter, n):
 * End bans; ${n} is their number.
 *
 * Errors: 0; -ENOMEM
 */
int server_bans_lift(struct server *sv, const struct server_bans_filter *filter,
                     unsigned *n) NODISCARD;

/* Bans that were not added, or that ended for others. */
struct server_bans_losses {
    unsigned no_table; /* the owner does not exist, or has no bans */
    struct ban_losses table;
};

/*
 * server_bans_add(sv, owner, list, n, lost):
 * Add the ${n} bans in ${list} to ${owner}; with both of its members, to the listener unless it
 * shares this [limits NAME]. Count in ${lost}.
 */
void server_bans_add(struct server *sv, const struct server_bans_owner *owner,
                     const struct ban *list, unsigned n, struct server_bans_losses *lost);

/* server_bans_has_limits(sv, name): does any listener share [limits ${name}]? */
bool server_bans_has_limits(struct server *sv, const char *name);

#endif
