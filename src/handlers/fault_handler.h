/*
 * handlers/fault_handler: fault injection: delays, throttles, cuts or drops a share of a listener's
 * connections.
 *
 *   channel -> [in:  delay, then rate] -> other handlers, tail
 *   channel <- [out:             rate] <-
 *
 * Each direction holds at most one read and pauses its source meanwhile. At the end of a session,
 * delayed input counts as not read; delayed output is still sent.
 */
#ifndef HANDLERS_FAULT_HANDLER_H
#define HANDLERS_FAULT_HANDLER_H

#include <stdbool.h>
#include <stdint.h>

#include "handlers/handler_type.h"
#include "net/cidr.h"

enum fault_drop_as { FAULT_DROP_RESET, FAULT_DROP_SILENCE };

/* 0: off. */
struct fault_handler_conf {
    int64_t delay_ns;     /* of the client's bytes */
    int64_t jitter_ns;    /* random, added per read */
    unsigned rate;        /* bytes a second, each direction */
    unsigned reset_after; /* bytes, both directions together */
    unsigned drop;        /* percent of selected connections not served */
    enum fault_drop_as drop_as;
    unsigned percent;         /* of connections selected */
    struct cidr_list clients; /* select only these; empty: all */
    unsigned seed;            /* seed of the draws, per connection; 0: random */
};

/* Not allowed in the option `pipeline`; always comes first. */
extern const struct handler_type fault_handler_type;

/*
 * fault_handler_wanted(conf):
 * Does ${conf} inject any fault?
 *
 * Thread: any
 */
bool fault_handler_wanted(const struct fault_handler_conf *conf);

#endif
