/*
 * option/option_routes: checks of the routes of a listener.
 */
#ifndef OPTION_OPTION_ROUTES_H
#define OPTION_OPTION_ROUTES_H

#include <stdbool.h>

struct section;
struct diagnostics;
struct listener_conf;
struct route_conf;
struct ini_entry;

/*
 * option_routes_wanted(section):
 * Does the file set a route, perhaps a refused one?
 *
 * Thread: as config_reload()
 */
bool option_routes_wanted(const struct section *section);

/* option_routes_refuse(conf): does a route of ${conf} refuse clients? */
bool option_routes_refuse(const struct listener_conf *conf);

/*
 * option_routes_entry(section, route):
 * Return the entry `route.ID` of ${route}.
 *
 * Thread: as config_reload()
 */
const struct ini_entry *option_routes_entry(const struct section *section,
                                            const struct route_conf *route);

/*
 * option_routes_check(section, diagnostics):
 * Report routes that never get a client, or not for one of their names, because an earlier route
 * holds whenever they do, and conditions that TLS at the listener makes useless.
 *
 * Thread: as config_reload()
 */
void option_routes_check(const struct section *section, struct diagnostics *diagnostics);

#endif
