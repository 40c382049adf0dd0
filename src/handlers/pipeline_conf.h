/* handlers/pipeline_conf: a listener's handlers, in order, and their settings. */
#ifndef HANDLERS_PIPELINE_CONF_H
#define HANDLERS_PIPELINE_CONF_H

#include "handlers/executor_handler.h"
#include "handlers/fault_handler.h"
#include "handlers/frame_handler.h"
#include "handlers/idle_handler.h"

struct handler_type;

#define PIPELINE_CONF_HANDLERS 8

struct pipeline_conf {
    const struct handler_type *list[PIPELINE_CONF_HANDLERS]; /* head to tail */
    unsigned n;
    struct frame_handler_conf frame;
    struct idle_handler_conf idle;
    struct executor_handler_conf executor;
    struct fault_handler_conf fault;
};

#endif
