/*
 * upstream/membership_change: build and publish the server set of a new configuration.
 *
 * A line whose ID and address stay the same continues: its servers keep sessions and state. Prepare
 * creates the other servers, commit removes servers that are not configured any more.
 */
#ifndef UPSTREAM_MEMBERSHIP_CHANGE_H
#define UPSTREAM_MEMBERSHIP_CHANGE_H

#include "base/must.h"
#include "upstream/membership.h"

struct membership_change;
struct upstream_conf;

/*
 * membership_change_prepare(out, r, conf):
 * Build the set of ${conf}. Until commit or cancel, membership_update() fails.
 *
 * Thread: control loop
 * Owns:   ${conf} must live until commit or cancel
 * Errors: 0; -ENOMEM; -E2BIG; -EBUSY (another change is prepared)
 */
int membership_change_prepare(struct membership_change **out, struct membership *r,
                              const struct upstream_conf *conf) NODISCARD;

/*
 * membership_change_line(change, id):
 * Find a line of the new configuration; NULL: none.
 *
 * Thread: control loop
 * Owns:   as membership_find_line()
 */
struct server_line *membership_change_line(const struct membership_change *change, const char *id);

/*
 * membership_change_places(change, line, places, n):
 * Set the ${n} > 0 places of a new name before the commit; call membership_change_build() next.
 * Does nothing if ${line} continues: its servers are up to date.
 *
 * Thread: control loop
 * Owns:   ${places} are copied
 * Errors: 0; -ENOMEM
 */
int membership_change_places(struct membership_change *change, const struct server_line *line,
                             const struct membership_place *places, unsigned n) NODISCARD;

/*
 * membership_change_build(change):
 * Build the set again if places were added; call it after the last membership_change_places().
 *
 * Thread: control loop
 * Errors: 0; -ENOMEM; -E2BIG
 */
int membership_change_build(struct membership_change *change) NODISCARD;

/*
 * membership_change_each_new(change, visit, cookie):
 * Call visit(cookie, server, line) for each server that is not checked yet and gets sessions with
 * the commit, but starts down; ${line} is its new line. Stops at an error.
 *
 * Thread: control loop
 * Owns:   ${line} lives as long as the server, or until membership_change_cancel()
 * Errors: 0; as visit()
 */
typedef int membership_visit(void *cookie, struct upstream_server *server,
                             const struct upstream_server_conf *line);
int membership_change_each_new(const struct membership_change *change, membership_visit *visit,
                               void *cookie) NODISCARD;

/*
 * membership_change_commit(change):
 * Publish the set. upstream.conf must already be the new configuration.
 *
 * Thread: control loop
 * Owns:   the caller calls membership_change_end() after a grace period of the workers
 */
void membership_change_commit(struct membership_change *change);

/*
 * membership_change_end(change):
 * Free ${change} and the replaced lines; membership_sweep() may free the replaced set.
 */
void membership_change_end(struct membership_change *change);

/*
 * membership_change_cancel(change):
 * Free ${change}, which is not committed, or NULL.
 *
 * Thread: control loop
 */
void membership_change_cancel(struct membership_change *change);

#endif
