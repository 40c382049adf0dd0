/*
 * handlers/fault_handler: fault injection: delays, throttles, cuts or drops a share of a listener's
 * connections.
 *
 *   channel -> [in:  delay, then rate] -> other handlers, tail
 *   channel <- [out:             rate] <-
 *
 * Each direction holds at most one read and pauses its source meanwhile. At the end of a session,
 * delayed input counts as unread; delayed output is still sent.
 */
#ifndef HANDLERS_FAULT_HANDLER_H
#define HANDLERS_FAULT_HANDLER_H

#include <stdbool.h>
#include <stdint.h>

#include "handlers/handler_type.h"
#include "net/cidr.h"

enum fault_drop_as { FAULT_DROP_RESET, FAULT_DROP_SILENCE };

/* Settings of a listener; 0 turns a fault off. */
struct fault_handler_conf {
    int64_t delay_ns;     /* delays the client's bytes */
    int64_t jitter_ns;    /* largest additional delay; random for each read */
    unsigned rate;        /* bytes a second, in each direction */
    unsigned reset_after; /* bytes of both directions together */
    unsigned drop;        /* percent of the selected connections that get no service */
    enum fault_drop_as drop_as;
    unsigned percent;         /* percentage of connections from `clients` to select */
    struct cidr_list clients; /* empty: all */
    unsigned seed;            /* seed of the random numbers; 0: the clock */
};

/* Always the first handler; cannot be named in option `pipeline`. */
extern const struct handler_type fault_handler_type;

/* fault_handler_wanted(conf): does ${conf} inject any fault? */
bool fault_handler_wanted(const struct fault_handler_conf *conf);

#endif
