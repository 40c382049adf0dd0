/*
 * handlers/idle_handler: read, write and all-idle timeouts; logs the client or ends its session.
 * After the handler `frame`, only whole frames count as reads.
 *
 * A write counts when the kernel takes bytes: a client that does not read is write-idle. While
 * reading is paused, only the write timeout can expire. After the client's end of file, the
 * all-idle timeout can expire too, and counts from the last write.
 *
 * Source: Netty IdleStateHandler, with observeOutput.
 */
#ifndef HANDLERS_IDLE_HANDLER_H
#define HANDLERS_IDLE_HANDLER_H

#include "handlers/handler_type.h"

#include <stdint.h>

enum idle_handler_action { IDLE_HANDLER_CLOSE, IDLE_HANDLER_LOG };

/* Timeouts; 0: off. */
struct idle_handler_conf {
    int64_t read_ns;
    int64_t write_ns;
    int64_t all_ns;
    enum idle_handler_action action;
};

extern const struct handler_type idle_handler_type;

#endif
