/*
 * admin/route_process: routes of the process: health, status, configuration, reload and upgrade.
 */
#ifndef ADMIN_ROUTE_PROCESS_H
#define ADMIN_ROUTE_PROCESS_H

#include "admin/admin_route.h"

struct admin_action;

extern const struct admin_routes route_process;

/*
 * route_process_finish(action):
 * The main thread has carried out ${action}: answer its request.
 *
 * Thread: admin loop
 * Owns:   takes ${action}
 */
void route_process_finish(struct admin_action *action);

#endif
