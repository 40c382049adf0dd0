/*
 * admin/admin_history: takes a sample of all figures once a second, for the history.
 *
 * Workers are only asked for the bytes of open sessions, each second up to 10,000 sessions, then
 * each 10 s. All functions: admin loop.
 */
#ifndef ADMIN_ADMIN_HISTORY_H
#define ADMIN_ADMIN_HISTORY_H

#include "base/must.h"

struct admin;
struct admin_history;
struct history;

/*
 * admin_history_create(out, a) / admin_history_destroy(ah):
 * Create / free, with the samples; NULL is allowed.
 *
 * Thread: main, while the admin loop has no thread
 * Errors: 0; -ENOMEM
 */
int admin_history_create(struct admin_history **out, struct admin *a) NODISCARD;
void admin_history_destroy(struct admin_history *ah);

/*
 * admin_history_start(ah) / admin_history_wake(ah):
 * Take the first sample, and one each second while history is not 0 / go on after it was 0.
 *
 * Thread: admin_history_wake(): any
 */
void admin_history_start(struct admin_history *ah);
void admin_history_wake(struct admin_history *ah);

/* admin_history_of(ah): return the samples. */
struct history *admin_history_of(struct admin_history *ah);

#endif
