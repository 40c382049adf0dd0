/*
 * service/log_handler: writes what happens on a channel to the log, at debug level.
 */
#ifndef SERVICE_LOG_HANDLER_H
#define SERVICE_LOG_HANDLER_H

#include "net/handler.h"
#include "service/session.h"

struct log_handler {
    struct handler handler;
    const struct session *session;
};

/*
 * log_handler_add(h, ch, session):
 * Put ${h} into the pipeline of ${ch}.
 *
 * Thread: loop of ${ch}
 * Owns:   nothing; ${h} must live as long as ${ch}
 * Errors: none
 */
void log_handler_add(struct log_handler *h, struct channel *ch, const struct session *session);

#endif
