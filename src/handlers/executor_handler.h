/*
 * handlers/executor_handler: runs blocking work on a client's bytes on executor threads, in order.
 *
 *   loop: read -> [message] -> strand ... executor: work -> [done] -> loop: next handler
 *
 * Each read is one message. Messages of one client run one after the other, perhaps on different
 * threads; end of file is passed on after them. Reading pauses when too many bytes are pending or
 * the executor is full, so that no message is lost. A client's memory is bounded by
 * EXECUTOR_HANDLER_BYTES plus one read.
 *
 * The built-in work only sleeps for `delay_ns`; put real work into executor_work().
 *
 * Source: Netty ChannelPipeline.addLast(group, handler).
 */
#ifndef HANDLERS_EXECUTOR_HANDLER_H
#define HANDLERS_EXECUTOR_HANDLER_H

#include "handlers/handler_type.h"

#include <stdint.h>

/*
 * Pause reading above this many pending bytes, resume at half of it. Each message counts with its
 * overhead.
 */
#define EXECUTOR_HANDLER_BYTES (64 * 1024)

struct executor_handler_conf {
    int64_t delay_ns; /* per message, on an executor thread */
};

extern const struct handler_type executor_handler_type;

#endif
