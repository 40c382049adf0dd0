/* handlers/log_handler: logs the events of a channel at debug level. */
#ifndef HANDLERS_LOG_HANDLER_H
#define HANDLERS_LOG_HANDLER_H

#include "handlers/handler_type.h"

/* Handler `log`: logs events, with the first bytes of reads and writes. */
extern const struct handler_type log_handler_type;

#endif
