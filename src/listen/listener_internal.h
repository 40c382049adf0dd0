/* listen/listener_internal: struct listener, for the files of listeners. */
#ifndef LISTEN_LISTENER_INTERNAL_H
#define LISTEN_LISTENER_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ref.h"
#include "base/log.h"
#include "engine/chooser.h"
#include "limits/hold.h"
#include "limits/quota.h"
#include "limits/throttle.h"
#include "listen/listener.h"
#include "stats/counters.h"
#include "tls/tls_counters.h"

struct listener_generation;

/* max_connections as an administrator set it; changed by the control loop, or main before start. */
struct listener_admin_max {
    bool is_set;
    unsigned max, configured;
};

struct listener {
    char *name;
    struct connection_limit *connection_limit; /* connection limit of the process */
    struct counters counters;
    struct tls_counters tls;
    struct quota quota;
    struct throttle_shared bandwidth;
    _Atomic uint64_t waits;       /* pauses at a connection limit */
    _Atomic uint64_t served_over; /* clients above it that a dry run served */
    struct chooser_rounds rounds; /* of its clients, over the workers */
    struct hold hold;             /* closed while an administrator pauses the listener */
    struct listener_admin_max admin_max;
    struct log_limit memory_limit;
    struct log_limit full_limit;
    /*
     * NULL: no generation yet, or the listener was removed. See note: current in
     * listen/listener_generation.h.
     */
    _Atomic(struct listener_generation *) current;
    /* time by which sessions of the removed listener must end; CLOCK_NEVER: no limit */
    _Atomic int64_t leave_by_ns;
    /*
     * References by struct listeners, generations and callers of listeners_lookup(). acq_rel: the
     * thread that frees the listener sees the writes of the other threads.
     */
    struct ref references;
};

#endif
