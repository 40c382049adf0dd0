/*
 * tls/tls_conf: configuration of a [tls NAME] section.
 */
#ifndef TLS_TLS_CONF_H
#define TLS_TLS_CONF_H

#include <stdint.h>

#include "tls/tls_profile.h"

struct arena;
struct tls_slot;

struct tls_conf {
    /* owns the memory of the fields below; NULL: they are static. See arena_hold() */
    struct arena *memory;
    const char *name;
    struct tls_profile_conf profile;
    int64_t watch_ns; /* interval between checks for changed files; 0: no checks */
    /*
     * Gives listeners and upstreams the current profile. A reload keeps the slot if the section's
     * name stays.
     */
    struct tls_slot *slot;
    struct tls_profile *loaded; /* profile of this configuration, for tls_slot_replace() */
};

#endif
