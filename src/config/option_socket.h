/*
 * config/option_socket: the kinds of values that are about TCP connections.
 *
 * See option.h for the contract of option_kind.set.
 */
#ifndef CONFIG_OPTION_SOCKET_H
#define CONFIG_OPTION_SOCKET_H

#include "config/option.h"

/* struct sock_keepalive: `off`, or up to three items */
extern const struct option_kind option_socket_keepalive;

/*
 * The sources of a struct sock_connect_conf. Whether this host has them shows when a connection is
 * made.
 */
extern const struct option_kind option_socket_source;

#endif
