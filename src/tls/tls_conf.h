/*
 * tls/tls_conf: a [tls NAME] section.
 */
#ifndef TLS_TLS_CONF_H
#define TLS_TLS_CONF_H

#include <stdint.h>

#include "tls/tls_profile.h"

struct arena;
struct tls_slot;

struct tls_conf {
    /* holds what the fields below refer to; NULL: static data. See arena_hold() */
    struct arena *memory;
    const char *name;
    struct tls_profile_conf profile;
    int64_t watch_ns; /* interval of looking for changed files; 0: never */
    /*
     * Gives listeners and upstreams the current profile. A reload keeps the slot if the section's
     * name stays.
     */
    struct tls_slot *slot;
    struct tls_profile *loaded; /* profile of this configuration, for tls_slot_replace() */
};

#endif
