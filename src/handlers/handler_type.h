/*
 * handlers/handler_type: a type of handler, and the calls of a handler to its session.
 *
 * handlers/pipeline_template keeps handler states in the session's memory and adds handlers to the
 * client's channel. A new handler needs a struct handler_type, a line in `kinds`
 * (pipeline_template.c), and its name in option `pipeline`, the sample and the manual. Settings:
 * pipeline_conf.h, option_listen.c, and a need in option_need.c. Counters: a table of figures,
 * its kind in tests/lint/check_statistics.py, and reactord(8). Examples: log_handler.c; with
 * counters fault_handler.c. `make lint` names what is missing.
 */
#ifndef HANDLERS_HANDLER_TYPE_H
#define HANDLERS_HANDLER_TYPE_H

#include <stddef.h>
#include <stdint.h>

#include "stats/session_reason.h"

struct address;
struct channel;
struct executor;
struct figure_table;
struct handler_context;
struct handler_step;

/*
 * Functions that a handler calls to end its session, on the session's loop. The first reason given
 * is kept.
 */
struct handler_context_ops {
    /* Send pending bytes, then end of file; discard input. */
    void (*end)(struct handler_context *context, enum session_reason reason);
    /* The same after ${limit_ns}; a stream that this cuts is reset instead. */
    void (*time_out)(struct handler_context *context, enum session_reason reason, int64_t limit_ns);
    /* Send pending bytes, then reset both sides. */
    void (*reset)(struct handler_context *context, enum session_reason reason);
    /* Reset both sides now. */
    void (*abort)(struct handler_context *context, enum session_reason reason);
};

/* The part of a session that its handlers see. */
struct handler_context {
    const struct handler_context_ops *ops;
    const char *listener;
    const struct address *peer;
};

struct handler_type {
    const char *name; /* in `pipeline` and logs */
    size_t state_bytes;
    size_t shared_bytes; /* memory for each listener: counters, log limits */
    /*
     * Add a handler to the pipeline of ${ch}, on its loop. Cannot fail. ${state} is zeroed memory
     * of state_bytes, aligned for any type, that lives as long as the session. Allocate other
     * memory on first use and free it at HANDLER_CLOSED: a channel may close without `active`.
     */
    void (*add)(void *state, struct channel *ch, struct handler_context *context,
                const struct handler_step *step);
    /* Counters in the memory for the listener, all live. NULL: no counters. */
    const struct figure_table *figures;
};

/* A handler of a listener's pipeline, for all sessions. */
struct handler_step {
    const struct handler_type *type;
    const void *conf;          /* the settings of its type, from struct pipeline_conf */
    struct executor *executor; /* NULL: none */
    void *shared;              /* zeroed; used on all loops, and by all generations */
    size_t offset;             /* of its state in a session's handler states */
};

#endif
