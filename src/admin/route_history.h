/*
 * admin/route_history: /v1/events and /v1/history.
 */
#ifndef ADMIN_ROUTE_HISTORY_H
#define ADMIN_ROUTE_HISTORY_H

#include "admin/admin_route.h"

extern const struct admin_routes route_history;

#endif
