/* admin/route_sessions: routes that list, kill and shed sessions. */
#ifndef ADMIN_ROUTE_SESSIONS_H
#define ADMIN_ROUTE_SESSIONS_H

#include "admin/admin_route.h"

extern const struct admin_routes route_sessions;

#endif
