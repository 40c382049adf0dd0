/*
 * admin/route_figures: routes of figures: /metrics for Prometheus, and JSON of loops, listeners and
 * upstreams.
 *
 * An answer is made in short steps, one in each turn of the admin loop, so that 1,000 servers do
 * not delay other requests.
 */
#ifndef ADMIN_ROUTE_FIGURES_H
#define ADMIN_ROUTE_FIGURES_H

#include "admin/admin_route.h"

extern const struct admin_routes route_figures;

#endif
