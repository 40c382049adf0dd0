/* limits/admission_internal: private data of admission*.c. */
#ifndef LIMITS_ADMISSION_INTERNAL_H
#define LIMITS_ADMISSION_INTERNAL_H

#include <stdatomic.h>

#include "base/log.h"
#include "base/ref.h"
#include "limits/admission.h"

/* Counter and log limits, shared by all generations of a listener. */
struct admission_history {
    struct ref references;
    _Atomic uint64_t denied;
    struct log_limit denied_limit;
    struct log_limit refused;
    struct log_limit uncounted;
    struct log_limit forgotten;
    struct log_limit banned;
    struct log_limit table_full;
    _Atomic uint64_t refused_clients[CLIENT_TABLE_ANSWERS], clients_uncounted, clients_forgotten;
    _Atomic uint64_t bans, refused_banned, offences[BAN_OFFENCES];
    _Atomic uint64_t offenders_forgotten, bans_forgotten;
};

struct admission {
    struct admission_conf conf;
    struct acl *access;           /* NULL: allow all */
    struct client_table *clients; /* NULL: no limits */
    struct ban_table *bans;       /* NULL: no bans */
    struct admission_history *history;
    const struct ban_table *copied; /* the last one, by those that share with this; not followed */
};

#endif
