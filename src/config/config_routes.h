/*
 * config/config_routes: checks of the routes of a listener.
 */
#ifndef CONFIG_CONFIG_ROUTES_H
#define CONFIG_CONFIG_ROUTES_H

#include <stdbool.h>

struct config_section;
struct diagnostics;
struct listener_conf;
struct route_conf;
struct ini_entry;

/*
 * config_routes_wanted(section):
 * Does the file set a route, perhaps a refused one?
 *
 * Thread: as config_reload()
 */
bool config_routes_wanted(const struct config_section *section);

/* config_routes_refuse(conf): does a route of ${conf} refuse clients? */
bool config_routes_refuse(const struct listener_conf *conf);

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
 * Report routes that never get a client, or not for one of their names, because an earlier route
 * holds whenever they do, and conditions that TLS at the listener makes useless.
 *
 * Thread: as config_reload()
 */
void config_routes_check(const struct config_section *section, struct diagnostics *diagnostics);

#endif
