/*
 * config/option_unix: option kinds: permissions of a unix socket: `660`, `redis`, `1000`.
 */
#ifndef CONFIG_OPTION_UNIX_H
#define CONFIG_OPTION_UNIX_H

#include "config/option.h"

/* struct sock_file: octal mode; user and group, name or number. */
extern const struct option_kind option_unix_mode;
extern const struct option_kind option_unix_user;
extern const struct option_kind option_unix_group;

#endif
