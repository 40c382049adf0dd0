/*
 * config/option_route: the option family `route.ID = CONDITION ... -> UPSTREAM`.
 */
#ifndef CONFIG_OPTION_ROUTE_H
#define CONFIG_OPTION_ROUTE_H

#include "config/option.h"

/* Target of a route that refuses clients. */
#define OPTION_ROUTE_REFUSE "refuse"

extern const struct option_kind option_route;

#endif
