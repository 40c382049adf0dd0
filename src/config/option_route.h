/*
 * config/option_route: the option family `route.ID = sni:NAME alpn:NAME ... -> UPSTREAM`.
 */
#ifndef CONFIG_OPTION_ROUTE_H
#define CONFIG_OPTION_ROUTE_H

#include "config/option.h"

extern const struct option_kind option_route;

#endif
