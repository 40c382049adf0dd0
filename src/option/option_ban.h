/* option/option_ban: option kinds: `10m after 100 in 10s`, and clients that are never banned. */
#ifndef OPTION_OPTION_BAN_H
#define OPTION_OPTION_BAN_H

#include "option/option.h"

extern const struct option_kind option_ban;        /* struct ban_conf; `0`: no bans */
extern const struct option_kind option_ban_exempt; /* struct cidr_list; no block of 0 bits */

#endif
