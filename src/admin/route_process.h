/*
 * admin/route_process: routes of the process: health, status, configuration, reload and upgrade.
 */
#ifndef ADMIN_ROUTE_PROCESS_H
#define ADMIN_ROUTE_PROCESS_H

#include "admin/admin_route.h"

struct admin_action;
struct admin_request;

extern const struct admin_routes route_process;

/* route_process_set_workers(rq, workers): set the number of workers, then answer ${rq}. */
void route_process_set_workers(struct admin_request *rq, unsigned workers);

/*
 * route_process_finish(action):
 * Answer the request of ${action}, which the main thread has carried out or refused.
 *
 * Thread: admin loop
 * Owns:   takes ${action}
 */
void route_process_finish(struct admin_action *action);

#endif
