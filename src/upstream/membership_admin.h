/*
 * upstream/membership_admin: an administrator's changes of servers at run time: drain, disable,
 * enable, weight.
 *
 * A change applies to all servers of a line, later ones too, or to one of them. If it changes a
 * weight, it publishes a new server set. The line keeps the change (upstream/server_line) until a
 * restart, or until a reload or an upgrade changes or removes the line.
 */
#ifndef UPSTREAM_MEMBERSHIP_ADMIN_H
#define UPSTREAM_MEMBERSHIP_ADMIN_H

#include "base/must.h"
#include "upstream/server_line.h"

struct membership;
struct server_line;
struct server_line_admin;
struct server_lines;

/*
 * membership_admin_set(r, line, admin, forget) / membership_admin_set_one(r, line, name, admin):
 * Replace the administrator's settings of ${line}, and undo those ${forget} of its single servers
 * (SERVER_LINE_OWN_STATES, SERVER_LINE_OWN_WEIGHTS) / those of its server ${name}, which need not
 * exist now; SERVER_LINE_AS_CONFIGURED: as the line. Sessions stay where they are.
 *
 * Thread: control loop, or main before start
 * Owns:   ${admin} is copied
 * Errors: 0; -ENOMEM; -EBUSY (another configuration is prepared); -EOPNOTSUPP (a weight for SRV
 *         records; to enable or drain a name that the configuration disables: it has no lookups)
 */
int membership_admin_set(struct membership *r, struct server_line *line,
                         const struct server_line_admin *admin, unsigned forget) NODISCARD;
int membership_admin_set_one(struct membership *r, struct server_line *line, const char *name,
                             const struct server_line_admin *admin) NODISCARD;

/*
 * membership_admin_get(r, line) / membership_admin_each_own(r, line, visit, cookie):
 * Return the administrator's settings of ${line} / call visit() for each of its servers with
 * settings of their own.
 *
 * Thread: control loop, or main while no reload is under way
 */
struct server_line_admin membership_admin_get(struct membership *r, const struct server_line *line);
typedef void membership_admin_visit(void *cookie, const char *name,
                                    const struct server_line_admin *admin);
void membership_admin_each_own(struct membership *r, const struct server_line *line,
                               membership_admin_visit *visit, void *cookie);

/*
 * membership_admin_reset(r):
 * Undo all changes by the administrator.
 *
 * Thread: control loop
 * Errors: as membership_admin_set(); the other lines are still undone
 */
int membership_admin_reset(struct membership *r) NODISCARD;

/*
 * membership_admin_log_lost(r, next):
 * Log the administrator's settings that the new configuration, with the lines ${next}, drops.
 *
 * Thread: control loop, before the commit
 */
void membership_admin_log_lost(const struct membership *r, const struct server_lines *next);

#endif
