/* admin/route_pause: routes that pause and resume listeners and upstreams. */
#ifndef ADMIN_ROUTE_PAUSE_H
#define ADMIN_ROUTE_PAUSE_H

#include "admin/admin_route.h"

extern const struct admin_routes route_pause;

#endif
