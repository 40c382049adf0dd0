/*
 * handlers/idle_handler: says, or ends the session, when nothing came, nothing went, or neither
 * did, for too long at this place of the pipeline: behind `frame` it counts whole frames.
 *
 * What goes is what the kernel took, so that a client that takes nothing, and for which bytes wait,
 * is idle. One that is not read, because someone has stopped that, is not. After its end of file
 * nothing can come, and only the writer is looked at.
 *
 * A read or a write costs a time stamp and no timer operation: see note: looks in idle_handler.c.
 *
 * Source: Netty IdleStateHandler, with observeOutput.
 */
#ifndef HANDLERS_IDLE_HANDLER_H
#define HANDLERS_IDLE_HANDLER_H

#include "handlers/handler_type.h"

#include <stdint.h>

enum idle_handler_action { IDLE_HANDLER_CLOSE, IDLE_HANDLER_LOG };

/* 0: not minded. */
struct idle_handler_conf {
    int64_t read_ns;
    int64_t write_ns;
    int64_t all_ns;
    enum idle_handler_action action;
};

/* `idle`, by pipeline_conf.idle */
extern const struct handler_type idle_handler_type;

#endif
