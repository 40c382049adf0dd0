/* admin/route_servers: state and weight of servers, settings of the process, and reset. */
#ifndef ADMIN_ROUTE_SERVERS_H
#define ADMIN_ROUTE_SERVERS_H

#include "admin/admin_route.h"

extern const struct admin_routes route_servers;

#endif
