/* admin/route_edits: routes that add servers and remove them, and the one that undoes changes. */
#ifndef ADMIN_ROUTE_EDITS_H
#define ADMIN_ROUTE_EDITS_H

#include "admin/admin_route.h"

struct admin_action;

extern const struct admin_routes route_edits;

/*
 * route_edits_finish(action):
 * As route_process_finish(), for the actions ADMIN_EDIT_SERVER and ADMIN_UNDO_EDITS.
 *
 * Thread: admin loop
 * Owns:   takes ${action}
 */
void route_edits_finish(struct admin_action *action);

#endif
