/*
 * limits/client_table: the clients of a listener: how many connections each has, and how fast it
 * opens them.
 *
 * A client is an IPv4 address, or the /64 of an IPv6 address, as a host has a whole one to choose
 * from; both prefixes are settings. A link-local address is a client by itself, together with its
 * zone. Clients on unix sockets have no address and are not counted.
 *
 * Memory is bounded: the table has a place for so many clients and no more. A client without a
 * connection keeps its place, for its rate, until another needs it: the one that was seen the
 * longest ago goes first, and if its rate was not over that is counted, for it starts anew. A
 * client with a connection is never forgotten; when all places are taken by such, a new client is
 * let in uncounted, and that is counted: to refuse it would let anyone with many addresses lock all
 * others out.
 *
 * Addresses are spread by a keyed hash, so that nobody can choose those that collide. The key is
 * drawn with the table.
 *
 * note: one lock. Boss threads enter and workers leave. The lock is held for a look-up and a change
 *           of some words, twice for
 * each connection. A lock and not atomics because a client moves between a chain and the order of
 * last use when its count changes from 0 or to 0, and all three change as one. One lock and not one
 * for each part of the table: a part would be full, and forget, while others have places.
 */
#ifndef LIMITS_CLIENT_TABLE_H
#define LIMITS_CLIENT_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "limits/quota.h"

struct address;
struct client;
struct client_table;

struct client_table_conf {
    unsigned max_clients; /* places, above 0 */
    unsigned prefix_v4;   /* bits of an IPv4 address that are one client, 1 to 32 */
    unsigned prefix_v6;   /* bits of an IPv6 address, 1 to 128 */
    struct quota_conf each;
};

enum client_table_answer {
    CLIENT_TABLE_IN,
    CLIENT_TABLE_TOO_MANY, /* each.max_connections are open */
    CLIENT_TABLE_TOO_FAST, /* each.rate */
    CLIENT_TABLE_ANSWERS
};

/* A reading. */
struct client_table_view {
    uint64_t clients; /* that have a place */
    uint64_t refused[CLIENT_TABLE_ANSWERS];
    uint64_t uncounted; /* connections let in without a place */
    uint64_t forgotten; /* clients whose place was needed before their rate was over */
};

/*
 * client_table_create(out, conf):
 * A table that knows nobody. Its memory is used as clients come.
 *
 * Thread: any
 * Owns:   the caller owns ${out}; ${conf} is copied
 * Errors: 0; -ENOMEM; -errno of getrandom(2)
 */
int client_table_create(struct client_table **out, const struct client_table_conf *conf) NODISCARD;

/*
 * client_table_enter(t, a, now_ns, out, forgot):
 * Count one more connection of the client at ${a}. CLIENT_TABLE_IN: ${out} is the client, for
 * client_table_leave(), or NULL if it is not counted. ${forgot}: another client was forgotten for
 * it, before its rate was over.
 *
 * Thread: any
 * Owns:   the client has its place until client_table_leave()
 */
enum client_table_answer client_table_enter(struct client_table *t, const struct address *a,
                                            int64_t now_ns, struct client **out,
                                            bool *forgot) NODISCARD;

/*
 * client_table_leave(t, c):
 * A connection of ${c} has ended; NULL is allowed.
 *
 * Thread: any
 */
void client_table_leave(struct client_table *t, struct client *c);

/*
 * client_table_read(t, out):
 * The counts now.
 *
 * Thread: any
 */
void client_table_read(struct client_table *t, struct client_table_view *out);

/*
 * client_table_destroy(t):
 * Free it; NULL is allowed.
 *
 * Thread: any, when nobody else knows it
 */
void client_table_destroy(struct client_table *t);

#endif
