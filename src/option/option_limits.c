/* option/option_limits: options of [limits NAME]. */
#include <stddef.h>

#include "option/option_ban.h"
#include "option/option_internal.h"
#include "option/option_kind.h"
#include "option/option_need.h"
#include "option/option_rate.h"
#include "listen/listener.h"

static const struct option_word overs[] = {
    {"reset", QUOTA_OVER_RESET},
    {"close", QUOTA_OVER_CLOSE},
    {"log", QUOTA_OVER_LOG},
    {NULL, 0},
};

/* option_kind_word stores an unsigned. */
_Static_assert(sizeof(enum quota_over) == sizeof(unsigned), "enum quota_over");

#define LIMITS(field) offsetof(struct limits_conf, field)

/* clang-format off */
static const struct option limits_rows[] = {
    {"max_connections_per_client", &option_kind_number, 0, OPTION_LIVE, "0",
     "0 to 10000000",
     "maximum number of open connections from one client address to these listeners; 0: no limit",
     LIMITS(clients.each.max_connections), 0, 10000000, NULL, NULL},
    {"connection_rate_per_client", &option_rate, 0, OPTION_NEW_CONNECTIONS, "0",
     "0, or a rate such as 100/s, 10/m or 5/h, optionally with a burst: 100/s burst=20",
     "rate limit of new connections from one client address to these listeners; 0: no limit",
     LIMITS(clients.each.rate), 0, 0, NULL, NULL},
    {"client_prefix_v4", &option_kind_number, 0, OPTION_LIVE, "32",
     "1 to 32", "leading bits of an IPv4 address that identify a client",
     LIMITS(clients.name.prefix_v4), 1, 32, NULL, NULL},
    {"client_prefix_v6", &option_kind_number, 0, OPTION_LIVE, "64",
     "1 to 128", "leading bits of an IPv6 address that identify a client",
     LIMITS(clients.name.prefix_v6), 1, 128, NULL, NULL},
    {"client_table_size", &option_kind_number, 0, OPTION_LIVE, "65536",
     "1 to 16777216", "maximum number of client addresses to track",
     LIMITS(clients.max_clients), 1, 16777216, NULL, NULL},
    {"ban", &option_ban, 0, OPTION_NEW_CONNECTIONS, "0",
     "0, or a rule such as 10m after 100 in 10s",
     "refuse a client at all these listeners for a time, after a number of offences within a time; "
     "0: never",
     LIMITS(ban), 0, 0, NULL, NULL},
    {"ban_exempt", &option_ban_exempt, OPTION_EMPTY, OPTION_NEW_CONNECTIONS, "",
     "10.0.0.0/8, 192.0.2.1 or 2001:db8::/32, comma-separated",
     "clients that are never banned",
     LIMITS(ban_exempt), 0, 0, NULL, &option_need_shared_ban},
    {"over_limit", &option_kind_word, 0, OPTION_NEW_CONNECTIONS, "reset",
     "reset, close or log", "action on a client above one of these limits",
     LIMITS(over_limit), 0, 0, overs, NULL},
};
/* clang-format on */

const struct option_rows option_limits = {limits_rows, ARRAY_LEN(limits_rows)};
