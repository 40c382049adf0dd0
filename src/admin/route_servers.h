/*
 * admin/route_servers: routes that change servers and settings, and the reset of these changes.
 */
#ifndef ADMIN_ROUTE_SERVERS_H
#define ADMIN_ROUTE_SERVERS_H

#include "admin/admin_route.h"

struct admin_request;

extern const struct admin_routes route_servers;

/* route_servers_reset(rq): undo all changes of settings, and answer. Thread: admin loop */
void route_servers_reset(struct admin_request *rq);

#endif
