/*
 * config/config_addresses: checks of listen addresses.
 */
#ifndef CONFIG_CONFIG_ADDRESSES_H
#define CONFIG_CONFIG_ADDRESSES_H

#include "base/must.h"

struct config;
struct diagnostics;

/*
 * config_addresses_check(config, diagnostics):
 * Report addresses of listeners that conflict with earlier addresses, and `reuseport` for unix
 * sockets.
 *
 * Thread: as config_reload()
 * Errors: 0; -ENOMEM
 */
int config_addresses_check(const struct config *config, struct diagnostics *diagnostics) NODISCARD;

#endif
