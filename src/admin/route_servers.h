/*
 * admin/route_servers: routes that change servers and settings, and reset changes.
 */
#ifndef ADMIN_ROUTE_SERVERS_H
#define ADMIN_ROUTE_SERVERS_H

#include "admin/admin_route.h"

extern const struct admin_routes route_servers;

#endif
