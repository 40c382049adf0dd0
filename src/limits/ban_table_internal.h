/* limits/ban_table_internal: the entries of a ban table, for its own files, under its lock. */
#ifndef LIMITS_BAN_TABLE_INTERNAL_H
#define LIMITS_BAN_TABLE_INTERNAL_H

#include <stdatomic.h>

#include "base/hash.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/ref.h"
#include "engine/lock.h"
#include "limits/ban_table.h"

#define BAN_TABLE_PARTS 8 /* of the window */

struct ban_table_entry {
    struct client_name name;
    int64_t part;     /* number of the newest part of the window */
    int64_t since_ns; /* of the ban */
    int64_t until_ns; /* 0: not banned */
    uint64_t refused;
    uint32_t chain;
    uint32_t at;      /* if banned: place in the heap */
    struct list link; /* unless banned */
    uint16_t counts[BAN_TABLE_PARTS];
    uint8_t offence; /* enum ban_offence, the last one */
    bool is_dry;     /* of the ban */
};

_Static_assert(BAN_OFFENCES_MAX < UINT16_MAX, "counts[]");

struct ban_table {
    struct ref references;
    struct ban_table_conf conf; /* immutable but for `ban`, which the lock guards */
    struct hash_key key;
    uint32_t max_bans;
    atomic_uint n_bans;              /* changed under the lock; see note: bans */
    struct lock lock;                /* guards the members below, and all entries */
    struct ban_table_entry *entries; /* entry i is entries[i - 1] */
    uint32_t n;                      /* entries in use, or used before */
    uint32_t *chains;
    uint32_t chain_mask;
    struct list offenders;            /* the least recent offence first */
    struct heap bans;                 /* the ban that ends first on top; some may have ended */
    bool forgot_offender, forgot_ban; /* since the last judgement */
};

/* ban_table_at(t, place): entry ${place} of 1 to t->n. */
struct ban_table_entry *ban_table_at(const struct ban_table *t, uint32_t place);

/* ban_table_find(t, name): find the entry of ${name}; NULL: none. */
struct ban_table_entry *ban_table_find(const struct ban_table *t, const struct client_name *name);

/*
 * ban_table_get(t, name, now_ns):
 * Find or add ${name}, which is not banned, and take it from its list; NULL: all entries are bans.
 */
struct ban_table_entry *ban_table_get(struct ban_table *t, const struct client_name *name,
                                      int64_t now_ns);

/* ban_table_ban(t, e): the ban of ${e}. */
struct ban ban_table_ban(const struct ban_table *t, const struct ban_table_entry *e);

/* ban_table_begin(t, e, since_ns, until_ns): begin the ban of ${e}, which is in no list. */
void ban_table_begin(struct ban_table *t, struct ban_table_entry *e, int64_t since_ns,
                     int64_t until_ns);

/* ban_table_end(t, e): end the ban of ${e}. */
void ban_table_end(struct ban_table *t, struct ban_table_entry *e);

/* ban_table_is_full(t) / ban_table_evict(t, now_ns): no more bans? / end the one to end first. */
bool ban_table_is_full(const struct ban_table *t);
void ban_table_evict(struct ban_table *t, int64_t now_ns);

/* ban_table_expire(t, now_ns, max): end up to ${max} bans in time; return their number. */
unsigned ban_table_expire(struct ban_table *t, int64_t now_ns, unsigned max);

#endif
