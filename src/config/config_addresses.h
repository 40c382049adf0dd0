/*
 * config/config_addresses: checks of listen addresses.
 */
#ifndef CONFIG_CONFIG_ADDRESSES_H
#define CONFIG_CONFIG_ADDRESSES_H

struct config;
struct diagnostics;

/*
 * config_addresses_check(config, s, diagnostics):
 * Report addresses of section ${s}, a [listen NAME], that conflict with earlier addresses, and
 * `reuseport` for unix sockets.
 *
 * Thread: as config_reload()
 */
void config_addresses_check(const struct config *config, unsigned s,
                            struct diagnostics *diagnostics);

#endif
