/*
 * config/option_socket: option kinds: TCP connections.
 */
#ifndef CONFIG_OPTION_SOCKET_H
#define CONFIG_OPTION_SOCKET_H

#include "config/option.h"

/* struct sock_keepalive: `off`, or idle time, interval and count */
extern const struct option_kind option_socket_keepalive;

/* source addresses of a struct sock_connect_conf; not checked before a connect */
extern const struct option_kind option_socket_source;

#endif
