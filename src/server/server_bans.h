/* server/server_bans: bans of clients, of all listeners. */
#ifndef SERVER_SERVER_BANS_H
#define SERVER_SERVER_BANS_H

#include "base/must.h"

struct ban;
struct cidr;
struct server;

/* Which bans. */
struct server_bans_filter {
    const char *listener;     /* NULL: any */
    const struct cidr *block; /* that has the client, or that the client has; NULL: any */
};

/*
 * server_bans_each(sv, filter, visit, cookie):
 * Visit bans under a lock, those of one listener after those of another, the oldest first.
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

/*
 * server_bans_add(sv, listener, list, n):
 * Add the ${n} bans in ${list} to ${listener}; returns the number of those that it has not, because
 * it does not exist, or has no bans, or other prefixes.
 */
unsigned server_bans_add(struct server *sv, const char *listener, const struct ban *list,
                         unsigned n);

#endif
