/*
 * config/config_namespaces: network namespaces of listeners and upstreams.
 */
#ifndef CONFIG_CONFIG_NAMESPACES_H
#define CONFIG_CONFIG_NAMESPACES_H

#include <stdbool.h>

struct address;
struct listener_conf;
struct upstream_conf;

/*
 * config_namespaces_reaches(up, server, listener):
 * Does a connect of ${up} to the address ${server} reach ${listener}? See address_covers().
 */
bool config_namespaces_reaches(const struct upstream_conf *up, const struct address *server,
                               const struct listener_conf *listener);

#endif
