/*
 * config/config_routes: checks of the routes of a listener.
 */
#ifndef CONFIG_CONFIG_ROUTES_H
#define CONFIG_CONFIG_ROUTES_H

#include <stdbool.h>

struct config_section;
struct diagnostics;
struct route_conf;
struct ini_entry;

/*
 * config_routes_wanted(section):
 * Does the file set a route, perhaps a refused one?
 *
 * Thread: as config_reload()
 */
bool config_routes_wanted(const struct config_section *section);

/*
 * config_routes_entry(section, route):
 * Return the entry `route.ID` of ${route}.
 *
 * Thread: as config_reload()
 */
const struct ini_entry *config_routes_entry(const struct config_section *section,
                                            const struct route_conf *route);

/*
 * config_routes_check(section, diagnostics):
 * Report each name of a route that an earlier route takes with all its protocols: the later route
 * never gets that name.
 *
 * Thread: as config_reload()
 */
void config_routes_check(const struct config_section *section, struct diagnostics *diagnostics);

#endif
