/*
 * limits/client_table: connections and connection rate of each client of a listener.
 *
 * A client is an IPv4 address or an IPv6 /64, since a host has a whole /64 to choose from; both
 * prefix lengths are options. A link-local address with its zone is one client. Clients on unix
 * sockets are not counted.
 *
 * The number of entries is fixed. A client without a connection keeps its entry, for its rate,
 * until the entry is needed: the least recently used goes first, and is counted as forgotten if its
 * rate had not recovered. A client with a connection is never evicted. When all entries have
 * connections, a new client is admitted uncounted, and the case is counted: refusing it would let
 * anyone with many addresses lock out all others.
 *
 * The hash is keyed with a random key for each table, against chosen collisions.
 *
 * note: one lock. Boss threads enter, workers leave; each connection takes the lock twice, for a
 * look-up and a few stores. Atomics would not do: when a count becomes 0 or leaves 0, the client
 * moves between hash chain and LRU list, and all three change as one. Shards would not do: one
 * could be full, and evict, while others have free entries.
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
    unsigned max_clients; /* entries, above 0 */
    unsigned prefix_v4;   /* bits of an IPv4 address that identify a client, 1 to 32 */
    unsigned prefix_v6;   /* same for IPv6, 1 to 128 */
    struct quota_conf each;
};

enum client_table_answer {
    CLIENT_TABLE_IN,
    CLIENT_TABLE_TOO_MANY, /* each.max_connections reached */
    CLIENT_TABLE_TOO_FAST, /* over each.rate */
    CLIENT_TABLE_ANSWERS
};

/* Snapshot of the counters. */
struct client_table_view {
    uint64_t clients; /* entries in use */
    uint64_t refused[CLIENT_TABLE_ANSWERS];
    uint64_t uncounted; /* connections admitted without an entry */
    uint64_t forgotten; /* clients evicted before their rate recovered */
};

/*
 * client_table_create(out, conf):
 * Create an empty table. Pages are touched only as clients come.
 *
 * Thread: any
 * Owns:   the caller owns ${out}; ${conf} is copied
 * Errors: 0; -ENOMEM; -errno of getrandom(2)
 */
int client_table_create(struct client_table **out, const struct client_table_conf *conf) NODISCARD;

/*
 * client_table_enter(t, a, now_ns, out, forgot):
 * Count one connection of the client at ${a}. CLIENT_TABLE_IN: ${out} is for client_table_leave(),
 * NULL if not counted. ${forgot}: the entry was evicted from another client before its rate
 * recovered.
 *
 * Thread: any
 * Owns:   the entry is kept until client_table_leave()
 */
enum client_table_answer client_table_enter(struct client_table *t, const struct address *a,
                                            int64_t now_ns, struct client **out,
                                            bool *forgot) NODISCARD;

/*
 * client_table_leave(t, c):
 * Uncount a connection of ${c}; NULL is allowed.
 *
 * Thread: any
 */
void client_table_leave(struct client_table *t, struct client *c);

/*
 * client_table_read(t, out):
 * Copy the counters.
 *
 * Thread: any
 */
void client_table_read(struct client_table *t, struct client_table_view *out);

/*
 * client_table_destroy(t):
 * Free it; NULL is allowed.
 *
 * Thread: any, as the last user
 */
void client_table_destroy(struct client_table *t);

#endif
