/*
 * option/option_unix: option kinds: permissions of a unix socket: `660`, `redis`, `1000`.
 */
#ifndef OPTION_OPTION_UNIX_H
#define OPTION_OPTION_UNIX_H

#include "option/option.h"

/* struct sock_file: octal mode; user and group, name or number. */
extern const struct option_kind option_unix_mode;
extern const struct option_kind option_unix_user;
extern const struct option_kind option_unix_group;

#endif
