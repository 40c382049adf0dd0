/*
 * handlers/log_handler: writes what happens on a channel to the log, at debug level.
 */
#ifndef HANDLERS_LOG_HANDLER_H
#define HANDLERS_LOG_HANDLER_H

#include "net/handler.h"

struct address;

struct log_handler {
    struct handler handler;
    const char *listener;
    const struct address *peer;
};

/*
 * log_handler_add(h, ch, listener, peer):
 * Put ${h} into the pipeline of ${ch}, whose lines begin with ${listener} and ${peer}.
 *
 * Thread: loop of ${ch}
 * Owns:   nothing; ${h}, ${listener} and ${peer} must live as long as ${ch}
 * Errors: none
 */
void log_handler_add(struct log_handler *h, struct channel *ch, const char *listener,
                     const struct address *peer);

#endif
