/* config/config_servers: checks of the servers of an upstream across options and sections. */
#ifndef CONFIG_CONFIG_SERVERS_H
#define CONFIG_CONFIG_SERVERS_H

#include "base/must.h"

struct config;
struct section;
struct diagnostics;

/*
 * config_servers_check(config, section, first, diagnostics):
 * Report words of servers without effect, and proxy loops, of the servers of ${section}, an
 * [upstream NAME], from its server number ${first} on.
 *
 * Errors: 0; -ENOMEM
 */
int config_servers_check(const struct config *config, const struct section *section, unsigned first,
                         struct diagnostics *diagnostics) NODISCARD;

#endif
