/*
 * upstream/upstream_change: replace the configuration of a running upstream.
 *
 *   upstream_change_prepare -> [upstream_change_places: first addresses of new names
 *                               -> upstream_change_build]
 *                           -> upstream_change_commit | upstream_change_cancel
 *
 * Servers with the same ID and address keep sessions and state; waiting sessions keep their
 * timeout.
 */
#ifndef UPSTREAM_UPSTREAM_CHANGE_H
#define UPSTREAM_UPSTREAM_CHANGE_H

#include <stdbool.h>

#include "base/must.h"
#include "upstream/membership_change.h"

struct membership_place;
struct server_line;
struct upstream;
struct upstream_change;
struct upstream_conf;

/*
 * upstream_change_prepare(out, up, conf):
 * Create all that ${conf} needs, without effect on ${up} yet; see membership_change_prepare().
 *
 * Thread: control loop
 * Owns:   as upstream_create()
 * Errors: 0; -ENOMEM; -E2BIG (too many servers); -EBUSY (another change is prepared)
 */
int upstream_change_prepare(struct upstream_change **out, struct upstream *up,
                            const struct upstream_conf *conf) NODISCARD;

/*
 * upstream_change_is_settled(up):
 * Are only a few replaced configurations and sets left that a worker may still use? If not, another
 * change should wait, so that changes in a row need bounded memory.
 */
bool upstream_change_is_settled(const struct upstream *up);

/*
 * upstream_change_line(change, id) / upstream_change_places(change, line, places, n) /
 * upstream_change_build(change) / upstream_change_each_new(change, visit, cookie):
 * Call membership_change_line() / membership_change_places() / membership_change_build() /
 * membership_change_each_new().
 *
 * Thread: control loop
 */
struct server_line *upstream_change_line(const struct upstream_change *change, const char *id);
int upstream_change_places(struct upstream_change *change, const struct server_line *line,
                           const struct membership_place *places, unsigned n) NODISCARD;
int upstream_change_build(struct upstream_change *change) NODISCARD;
int upstream_change_each_new(const struct upstream_change *change, membership_visit *visit,
                             void *cookie) NODISCARD;

/*
 * upstream_change_commit(change) / upstream_change_cancel(change):
 * Put the configuration into use / free ${change}, which is not committed, or NULL.
 *
 * Thread: control loop
 * Owns:   commit frees ${change}, after a grace period
 */
void upstream_change_commit(struct upstream_change *change);
void upstream_change_cancel(struct upstream_change *change);

#endif
