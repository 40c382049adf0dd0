/*
 * config/option_unix: the kinds of value that say who may connect to a unix socket: `660`, `redis`,
 * `1000`.
 *
 * See option.h for the contract of option_kind.set.
 */
#ifndef CONFIG_OPTION_UNIX_H
#define CONFIG_OPTION_UNIX_H

#include "config/option.h"

/* struct sock_file: its mode, in octal; its user and its group, by name or number. */
extern const struct option_kind option_unix_mode;
extern const struct option_kind option_unix_user;
extern const struct option_kind option_unix_group;

#endif
