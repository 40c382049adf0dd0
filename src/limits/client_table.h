/*
 * limits/client_table: connections and connection rate of each client of a listener.
 *
 * A client is an IPv4 address, an IPv6 /64 (default), or a link-local address with zone. Unix
 * sockets are not counted.
 *
 * A client without connections keeps its entry, for its rate, until the entry is evicted, least
 * recently used first. The client then counts as `forgotten` if its bucket was not full. If all
 * clients have connections, a new client is admitted without limits: otherwise a client with many
 * addresses could lock out others.
 *
 * The hash key is random, against hash flooding.
 *
 * note: one lock. Counts, hash chains and LRU list change together, so one lock guards them. Each
 * connection takes it twice, briefly.
 */
#ifndef LIMITS_CLIENT_TABLE_H
#define LIMITS_CLIENT_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "limits/client_name.h"
#include "limits/quota.h"

struct address;
struct client;
struct client_table;

struct client_table_conf {
    unsigned max_clients;
    struct client_name_conf name;
    struct quota_conf each;
};

enum client_table_answer {
    CLIENT_TABLE_IN,
    CLIENT_TABLE_TOO_MANY,
    CLIENT_TABLE_TOO_FAST,
    CLIENT_TABLE_ANSWERS
};

/*
 * client_table_create(out, conf):
 * Create an empty table.
 *
 * Owns:   ${conf} is copied
 * Errors: 0; -ENOMEM; -errno of getrandom(2)
 */
int client_table_create(struct client_table **out, const struct client_table_conf *conf) NODISCARD;

/*
 * client_table_fits(t, conf) / client_table_set(t, each, now_ns):
 * Does ${conf} differ from that of ${t} only in the limits? / Change the limits of all clients.
 */
bool client_table_fits(const struct client_table *t, const struct client_table_conf *conf);
void client_table_set(struct client_table *t, const struct quota_conf *each, int64_t now_ns);

/*
 * client_table_count(t, a, now_ns):
 * Count in a connection of client ${a}, even over the limits. NULL: not counted.
 */
struct client *client_table_count(struct client_table *t, const struct address *a, int64_t now_ns);

/*
 * client_table_enter(t, a, now_ns, out, forgot):
 * Count in a connection of client ${a}, unless a limit refuses it. CLIENT_TABLE_IN: ${out} is for
 * client_table_leave(), NULL if not counted. ${forgot}: another client was evicted before its
 * bucket was full.
 */
enum client_table_answer client_table_enter(struct client_table *t, const struct address *a,
                                            int64_t now_ns, struct client **out,
                                            bool *forgot) NODISCARD;

/* client_table_leave(t, c): count out a connection of ${c}, which may be NULL. */
void client_table_leave(struct client_table *t, struct client *c);

/* client_table_clients(t): number of entries in use. */
unsigned client_table_clients(struct client_table *t);

/*
 * client_table_hold(t) / client_table_release(t):
 * Add a reference and return ${t} / release a reference; the last release frees ${t}. NULL is
 * allowed.
 */
struct client_table *client_table_hold(struct client_table *t);
void client_table_release(struct client_table *t);

#endif
