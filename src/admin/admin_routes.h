/*
 * admin/admin_routes: table of all routes.
 */
#ifndef ADMIN_ADMIN_ROUTES_H
#define ADMIN_ADMIN_ROUTES_H

#include "admin/admin_route.h"

/*
 * admin_routes_find(path, method, allow):
 * Find the route of ${path} and ${method}. If NULL, ${allow} has the methods of ${path}; "": no
 * route has this path.
 */
const struct admin_route *admin_routes_find(const char *path, const char *method,
                                            char allow[ADMIN_ROUTE_ALLOW_BYTES]);

#endif
