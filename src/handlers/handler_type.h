/*
 * handlers/handler_type: what a kind of handler says of itself, and what it may ask of the session
 * around it.
 *
 * A kind is constant and knows no session. handlers/pipeline_template gives each of its handlers a
 * place for its state, in the memory of the session, and adds it to the pipeline of the client's
 * channel; there it lives as net/handler.h says.
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
 * What the session does for its handlers. All of it on its loop, from any operation of a handler;
 * the first reason stands.
 */
struct handler_context_ops {
    /*
     * End in good order: what waits is sent, then end of file, and what still comes is discarded.
     */
    void (*end)(struct handler_context *host, enum session_reason reason);
    /* End visibly: both sides get what was read for them, then a reset. */
    void (*reset)(struct handler_context *host, enum session_reason reason);
    /* End now and visibly: what waits is lost. */
    void (*abort)(struct handler_context *host, enum session_reason reason);
};

/* The session, as its handlers see it. It lives as long as they do. */
struct handler_context {
    const struct handler_context_ops *ops;
    const char *listener; /* name, for logs */
    const struct address *peer;
};

struct handler_type {
    const char *name; /* in the option `pipeline`, and in logs */
    size_t state_bytes;
    size_t shared_bytes; /* what all sessions of a listener share: counters, limits of log lines */
    /*
     * Add a handler to the pipeline of ${ch}. ${state} has state_bytes, zeroed and aligned for
     * anything, and lives as long as the session. What else the handler needs it takes when it
     * first does, and gives back in its `closed`; a channel may be closed that was never active. On
     * the loop of ${ch}. It cannot fail.
     */
    void (*add)(void *state, struct channel *ch, struct handler_context *host,
                const struct handler_step *step);
    /*
     * Write what ${shared} counted to the log, at notice level, on any thread. NULL: it counts
     * nothing.
     */
    void (*log_stats)(const void *shared, const char *listener);
};

/* A handler's place in the plan of a listener: the same for all sessions. */
struct handler_step {
    const struct handler_type *type;
    const struct pipeline_conf *conf;
    struct executor *executor; /* for slow work; NULL: there is none */
    void *shared;  /* shared_bytes, zeroed at first; every session's loop may write to it */
    size_t offset; /* of the state, behind that of the handlers before */
};

#endif
