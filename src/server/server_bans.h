/* server/server_bans: bans of clients, of all listeners. */
#ifndef SERVER_SERVER_BANS_H
#define SERVER_SERVER_BANS_H

#include "base/must.h"
#include "limits/ban.h"

struct cidr;
struct server;

/* Longest name of a listener, with NUL. */
#define SERVER_BANS_OWNER_BYTES 64

/* Which bans. */
struct server_bans_filter {
    const char *listener;     /* NULL: any */
    const struct cidr *block; /* that has the client, or that the client has; NULL: any */
};

/*
 * server_bans_each(sv, filter, visit, cookie):
 * Visit copies of bans, those of one listener after those of another.
 *
 * Errors: 0; -ENOMEM
 */
typedef void server_bans_visit(void *cookie, const char *listener, const struct ban *ban);
int server_bans_each(struct server *sv, const struct server_bans_filter *filter,
                     server_bans_visit *visit, void *cookie) NODISCARD;

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
    unsigned no_table; /* the listener does not exist, or has no bans */
    struct ban_losses table;
};

/* server_bans_add(sv, listener, list, n, lost): add the ${n} bans in ${list}; count in ${lost}. */
void server_bans_add(struct server *sv, const char *listener, const struct ban *list, unsigned n,
                     struct server_bans_losses *lost);

#endif
