/*
 * option/option_route: the option family `route.ID = CONDITION ... -> UPSTREAM`.
 */
#ifndef OPTION_OPTION_ROUTE_H
#define OPTION_OPTION_ROUTE_H

#include "option/option.h"

/* Target of a route that refuses clients. */
#define OPTION_ROUTE_REFUSE "refuse"

extern const struct option_kind option_route;

#endif
