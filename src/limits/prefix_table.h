/*
 * limits/prefix_table: find the first prefix of a list that contains an address.
 *
 * Prefixes nest or are disjoint, so they cut the addresses into intervals with one answer each. A
 * lookup is a binary search over the starts:
 *
 *   prefixes, in their order      0: 10.1.0.0/16    1: 10.0.0.0/8    2: 10.1.2.0/24
 *   intervals      0.0.0.0: none | 10.0.0.0: 1 | 10.1.0.0: 0 | 10.2.0.0: 1 | 11.0.0.0: none
 */
#ifndef LIMITS_PREFIX_TABLE_H
#define LIMITS_PREFIX_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/must.h"

struct address;
struct cidr;
struct prefix_table;

/* No match; above any index. */
#define PREFIX_TABLE_NONE UINT32_MAX

/*
 * prefix_table_create(out, list, n):
 * Build a table of the ${n} prefixes in ${list}, which is not kept.
 *
 * Errors: 0; -ENOMEM
 */
int prefix_table_create(struct prefix_table **out, const struct cidr *list, size_t n) NODISCARD;

/*
 * prefix_table_find(t, a):
 * Return the lowest index of a prefix that contains ${a}, or PREFIX_TABLE_NONE.
 */
uint32_t prefix_table_find(const struct prefix_table *t, const struct address *a);

/*
 * prefix_table_covers(by, list, n):
 * Set ${by[i]} to the lowest index of a prefix that covers all of ${list[i]}: at most i. Coverage
 * by several prefixes together is not detected.
 *
 * Errors: 0; -ENOMEM
 */
int prefix_table_covers(uint32_t *by, const struct cidr *list, size_t n) NODISCARD;

/* prefix_table_destroy(t): free ${t} or NULL. */
void prefix_table_destroy(struct prefix_table *t);

#endif
