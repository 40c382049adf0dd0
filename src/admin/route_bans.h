/* admin/route_bans: /v1/bans, a list of bans, and /v1/bans/lift, which ends them. */
#ifndef ADMIN_ROUTE_BANS_H
#define ADMIN_ROUTE_BANS_H

#include "admin/admin_route.h"

extern const struct admin_routes route_bans;

#endif
