/*
 * limits/prefix_table: which is the first of many blocks (net/cidr) that an address is in?
 *
 * Prefixes either nest or are apart, so a list of them cuts the addresses into intervals in each of
 * which the answer is one and the same. The intervals are worked out once; a lookup is a binary
 * search among where they begin:
 *
 *   prefixes, in their order      0: 10.1.0.0/16    1: 10.0.0.0/8    2: 10.1.2.0/24
 *   intervals                   0.0.0.0: none | 10.0.0.0: 1 | 10.1.0.0: 0 | 10.2.0.0: 1 | 11.0.0.0:
 *                               none
 *
 * IPv4 and IPv6 have intervals of their own. Immutable once made.
 */
#ifndef LIMITS_PREFIX_TABLE_H
#define LIMITS_PREFIX_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/must.h"

struct address;
struct cidr;
struct prefix_table;

/* Covered by none. Also more than there may be in a list. */
#define PREFIX_TABLE_NONE UINT32_MAX

/*
 * prefix_table_create(out, list, n):
 * A table of ${n} prefixes; the number of each is its place in ${list}.
 *
 * Thread: any
 * Owns:   ${list} is not needed any more when this returns
 * Errors: 0; -ENOMEM
 */
int prefix_table_create(struct prefix_table **out, const struct cidr *list, size_t n) NODISCARD;

/*
 * prefix_table_find(t, a):
 * The lowest number of a prefix that ${a} is in.
 *
 * Thread: any
 * Errors: PREFIX_TABLE_NONE
 */
uint32_t prefix_table_find(const struct prefix_table *t, const struct address *a);

/*
 * prefix_table_covers(by, list, n):
 * For each of ${list} the lowest number of a prefix that covers all of it: its own, or that of one
 * before it which leaves nothing to it. Several that do so together are not seen.
 *
 * Thread: any
 * Errors: 0; -ENOMEM
 */
int prefix_table_covers(uint32_t *by, const struct cidr *list, size_t n) NODISCARD;

/*
 * prefix_table_destroy(t):
 * Free it; NULL is allowed.
 *
 * Thread: any
 */
void prefix_table_destroy(struct prefix_table *t);

#endif
