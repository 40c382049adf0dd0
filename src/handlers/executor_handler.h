/*
 * handlers/executor_handler: runs blocking work on a client's bytes on executor threads, in order.
 *
 *   loop: read -> [message] -> strand ... executor: work -> [done] -> loop: next handler
 *
 * Each read is one message. Messages of one client keep their order and never overlap, but no
 * thread is reserved. End of file waits for them. Reading pauses when too many bytes are pending or
 * the executor is full; nothing is dropped. Memory is bounded by EXECUTOR_HANDLER_BYTES plus one
 * read, which behind `frame` is one message per frame.
 *
 * The built-in work waits for `delay_ns`, as a slow service would; replace it in executor_work().
 *
 * Source: Netty ChannelPipeline.addLast(group, handler).
 */
#ifndef HANDLERS_EXECUTOR_HANDLER_H
#define HANDLERS_EXECUTOR_HANDLER_H

#include "handlers/handler_type.h"

#include <stdint.h>

/* Pause reading above this, resume at half; includes overhead per message. */
#define EXECUTOR_HANDLER_BYTES (64 * 1024)

struct executor_handler_conf {
    int64_t delay_ns; /* per message, on an executor thread */
};

extern const struct handler_type executor_handler_type;

#endif
