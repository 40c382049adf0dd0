/*
 * handlers/log_handler: logs a channel's events, with the first bytes of reads and writes, at debug
 * level.
 */
#ifndef HANDLERS_LOG_HANDLER_H
#define HANDLERS_LOG_HANDLER_H

#include "handlers/handler_type.h"

extern const struct handler_type log_handler_type;

#endif
