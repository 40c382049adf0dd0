/*
 * handlers/fault_handler: fault injection; delays, throttles, cuts or drops a share of a listener's
 * connections.
 *
 *   channel -> [in:  delay, then rate] -> other handlers, tail
 *   channel <- [out:             rate] <-
 *
 * Each direction keeps at most one read: meanwhile the channel is not read, or its writer pauses.
 * So bytes keep their order. When a session ends, kept input counts as not read, and kept output is
 * sent first. A connection that is not selected has no handler and no cost.
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
    int64_t delay_ns;     /* of what the client sends */
    int64_t jitter_ns;    /* added to delay_ns: up to so much, drawn for each read */
    unsigned rate;        /* bytes a second, each direction */
    unsigned reset_after; /* bytes, both directions together */
    unsigned drop;        /* percent of the selected connections that are not served */
    enum fault_drop_as drop_as;
    unsigned percent;         /* of the connections that are selected */
    struct cidr_list clients; /* only these clients are selected; empty: all */
    unsigned seed;            /* makes the draws reproducible, by connection number; 0: random */
};

/* Not for the option `pipeline`: handlers/pipeline_template puts it first. */
extern const struct handler_type fault_handler_type;

/*
 * fault_handler_wanted(conf):
 * Does ${conf} inject any fault?
 *
 * Thread: any
 */
bool fault_handler_wanted(const struct fault_handler_conf *conf);

#endif
