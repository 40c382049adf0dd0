/* |handlers/log_handler: logs the events of a channel at debug level. */
#ifndef HANDLERS_LOG_HANDLER_H
#define HANDLERS_LOG_HANDLER_H

#include "handlers/handler_type.h"

/* `log`: each event of the client's channel, and the first bytes of each read and write. */
extern const struct handler_type log_handler_type;

#endif
