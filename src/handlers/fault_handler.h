/*
 * handlers/fault_handler: makes a share of a listener's connections slow, cut or mute, to see what
 * their clients do.
 *
 *   channel -> [in: kept for its delay, then as many bytes a second] -> the other handlers, the
 *   tail
 *   channel <- [out:                       as many bytes a second] <-
 *
 * It keeps at most what one read gives in each direction: meanwhile the channel is not read, and
 * whoever feeds it pauses. So bytes stay in order, and what was kept when a session ends is input
 * that was not read, or output that is sent before the end. A connection that is spared has no
 * handler and no cost.
 */
#ifndef HANDLERS_FAULT_HANDLER_H
#define HANDLERS_FAULT_HANDLER_H

#include <stdbool.h>
#include <stdint.h>

#include "handlers/handler_type.h"
#include "net/cidr.h"

enum fault_drop_as { FAULT_DROP_RESET, FAULT_DROP_SILENCE };

/* 0: none of it. */
struct fault_handler_conf {
    int64_t delay_ns;     /* what a client sends is handed on so much later */
    int64_t jitter_ns;    /* and up to so much on top, drawn for each read */
    unsigned rate;        /* bytes a second in each direction */
    unsigned reset_after; /* bytes, both directions together */
    unsigned drop;        /* percent of the connections concerned that are not served at all */
    enum fault_drop_as drop_as;
    unsigned percent;         /* of the connections that are concerned */
    struct cidr_list clients; /* whose connections are; none: everybody's */
    unsigned seed; /* draws the same again, connection by connection; 0: never the same */
};

/* Not for the option `pipeline`: handlers/pipeline_template puts it in front of all others. */
extern const struct handler_type fault_handler_type;

/*
 * fault_handler_wanted(conf):
 * Does ${conf} do anything?
 *
 * Thread: any
 */
bool fault_handler_wanted(const struct fault_handler_conf *conf);

#endif
