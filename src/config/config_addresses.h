/*
 * config/config_addresses: checks of listener addresses: conflicts, and options that an address
 * cannot have.
 */
#ifndef CONFIG_CONFIG_ADDRESSES_H
#define CONFIG_CONFIG_ADDRESSES_H

struct config;
struct diagnostics;

/*
 * config_addresses_check(config, s, report):
 * Report problems of the addresses of section ${s}, a [listen NAME]: conflicts with earlier
 * addresses, of this or another listener, and options that need another kind of address.
 *
 * Thread: before start
 */
void config_addresses_check(const struct config *config, unsigned s,
                            struct diagnostics *diagnostics);

#endif
