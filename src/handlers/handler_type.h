/*
 * handlers/handler_type: the constant description of a handler, and the calls it may make on its
 * session.
 *
 * handlers/pipeline_template reserves each handler's state in the memory of the session, and adds
 * it to the pipeline of the client's channel. Life cycle: net/handler.h.
 */
#ifndef HANDLERS_HANDLER_TYPE_H
#define HANDLERS_HANDLER_TYPE_H

#include <stddef.h>

#include "stats/session_reason.h"

struct address;
struct channel;
struct executor;
struct handler_context;
struct handler_step;
struct pipeline_conf;

/*
 * Session operations. Call them on the session's loop, from any operation of a handler; the first
 * reason wins.
 */
struct handler_context_ops {
    /* |End gracefully: send pending bytes, then end of file; discard further input. */
    void (*end)(struct handler_context *host, enum session_reason reason);
    /* Reset both sides, after pending bytes are sent. */
    void (*reset)(struct handler_context *host, enum session_reason reason);
    /* Reset now; pending bytes are lost. */
    void (*abort)(struct handler_context *host, enum session_reason reason);
};

/* The session, as its handlers see it. Lives as long as they do. */
struct handler_context {
    const struct handler_context_ops *ops;
    const char *listener; /* name, for logs */
    const struct address *peer;
};

struct handler_type {
    const char *name; /* in the option `pipeline` and in logs */
    size_t state_bytes;
    size_t shared_bytes; /* shared by all sessions of a listener: counters, log limits */
    /*
     * Add a handler to the pipeline of ${ch}, on its loop. Cannot fail. ${state} has state_bytes,
     * zeroed and aligned for anything, and lives as long as the session. Allocate other resources
     * on first use and free them in `closed`; a channel may be closed without ever being active.
     */
    void (*add)(void *state, struct channel *ch, struct handler_context *host,
                const struct handler_step *step);
    /* Log the counters in ${shared} at notice level, on any thread. NULL: no counters. */
    void (*log_stats)(const void *shared, const char *listener);
};

/* A handler in a listener's pipeline template, shared by all sessions. */
struct handler_step {
    const struct handler_type *type;
    const struct pipeline_conf *conf;
    struct executor *executor; /* NULL: none */
    void *shared;              /* shared_bytes, initially zero; written by all loops */
    size_t offset;             /* of the state */
};

#endif
