/* admin/admin_past: what the admin interface remembers, for the process that replaces this one. */
#ifndef ADMIN_ADMIN_PAST_H
#define ADMIN_ADMIN_PAST_H

#include <stddef.h>
#include <stdio.h>

#include "base/must.h"

struct admin;

/* admin_past_write_history(a, f) / admin_past_write_events(a, f): write them to ${f}. */
void admin_past_write_history(struct admin *a, FILE *f);
void admin_past_write_events(struct admin *a, FILE *f);

/*
 * admin_past_read_history(a, record, n) / admin_past_read_events(a, record, n):
 * Use the ${n} bytes of ${record}, which a NUL follows, and which are changed.
 *
 * Thread: main, before admin_start()
 * Errors: 0; -EINVAL (incomplete, or wrong); -ENOMEM
 */
int admin_past_read_history(struct admin *a, char *record, size_t n) NODISCARD;
int admin_past_read_events(struct admin *a, char *record, size_t n) NODISCARD;

#endif
