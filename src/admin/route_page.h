/*
 * admin/route_page: the status page at `/`, for browsers. The page's script fetches the figures,
 * with the token that the user enters.
 */
#ifndef ADMIN_ROUTE_PAGE_H
#define ADMIN_ROUTE_PAGE_H

#include "admin/admin_route.h"

extern const struct admin_routes route_page;

#endif
