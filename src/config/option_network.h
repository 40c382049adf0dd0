/*
 * config/option_network: the kinds of values that are about addresses and services.
 *
 * They know the struct of their section, because what they set is more than one field. See option.h
 * for the contract of option_kind.set.
 */
#ifndef CONFIG_OPTION_NETWORK_H
#define CONFIG_OPTION_NETWORK_H

#include "config/option.h"

/* How many addresses a listener may have. */
#define OPTION_NETWORK_LISTEN_ADDRESSES 64

/* addresses and n_addresses of a listener_conf */
extern const struct option_kind option_network_addresses;

/*
 * The next of the servers of an upstream_conf, which has room for it. Of a host name only the form
 * is looked at.
 */
extern const struct option_kind option_network_server;

#endif
