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
    int64_t watch_ns; /* look for changed files so often; 0: never */
    /*
     * What listeners and upstreams refer to. Configurations with a section of this name share it
     * from reload to reload.
     */
    struct tls_slot *slot;
    struct tls_profile *loaded; /* with this configuration, for tls_slot_replace() */
};

#endif
