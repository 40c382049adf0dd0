/*
 * config/option_network: option kinds: addresses and servers. They set several fields of their
 * section's struct.
 */
#ifndef CONFIG_OPTION_NETWORK_H
#define CONFIG_OPTION_NETWORK_H

#include "config/option.h"

#define OPTION_NETWORK_LISTEN_ADDRESSES 64

/* addresses and n_addresses of a listener_conf */
extern const struct option_kind option_network_addresses;

/* addresses and n_addresses of an admin_conf */
extern const struct option_kind option_network_admin_addresses;

/* next server of an upstream_conf, which has space for it; host names are not resolved */
extern const struct option_kind option_network_server;

#endif
