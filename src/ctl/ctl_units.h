/*
 * ctl/ctl_units: numbers with units for people.
 */
#ifndef CTL_CTL_UNITS_H
#define CTL_CTL_UNITS_H

#include <stdio.h>

/*
 * ctl_units_put_bytes(out, n) / ctl_units_put_count(out, n):
 * Write ${n} bytes as 812, 1.5K, 23M (K: 1,024) / a count as 812, 150k, 23M (k: 1,000; only from
 * 100,000 on).
 */
void ctl_units_put_bytes(FILE *out, double n);
void ctl_units_put_count(FILE *out, double n);

/*
 * ctl_units_put_seconds(out, seconds):
 * Write a duration by its two largest units: 250us, 12ms, 3.2s, 4m05s, 3h07m, 12d03h.
 */
void ctl_units_put_seconds(FILE *out, double seconds);

#endif
