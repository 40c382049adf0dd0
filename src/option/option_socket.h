/*
 * option/option_socket: option kinds: TCP connections.
 */
#ifndef OPTION_OPTION_SOCKET_H
#define OPTION_OPTION_SOCKET_H

#include "option/option.h"

/* struct sock_keepalive: `off`, or idle time, interval and count */
extern const struct option_kind option_socket_keepalive;

/* source addresses of a struct sock_connect_conf; not checked before a connect */
extern const struct option_kind option_socket_source;

/* struct sock_ports *: LOW-HIGH; empty: NULL */
extern const struct option_kind option_socket_ports;

extern const struct option_kind option_socket_mark; /* unsigned: decimal, or 0x and hexadecimal */
extern const struct option_kind option_socket_dscp; /* unsigned: a number, or a name as ef */
extern const struct option_kind option_socket_seconds; /* unsigned: a duration in whole seconds */

extern const struct option_kind option_socket_namespace; /* const char *: name or path */

/* char[SOCK_OPTIONS_NAME_BYTES]: name of an interface, or of a congestion control */
extern const struct option_kind option_socket_interface;
extern const struct option_kind option_socket_congestion;

#endif
