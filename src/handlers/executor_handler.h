/*
 * handlers/executor_handler: runs work on a client's bytes on executor threads, in order, so that
 * it cannot block the loop.
 *
 *   loop: read -> [message] -> strand ... executor: work -> [done] -> loop: next handler
 *
 * Each read is one message, on its way in and out. Messages of one client keep their order and
 * never overlap, but no thread is reserved for them. End of file waits for the messages before it.
 * When too many bytes are pending or the executor is full, reading pauses; nothing is dropped.
 * Memory is bounded by EXECUTOR_HANDLER_BYTES plus one read of the channel; behind `frame`, each
 * frame of that read is a message of its own.
 *
 * The built-in work waits for `delay_ns`, to test clients and servers with a slow service. Other
 * work goes into executor_work().
 *
 * Source: Netty ChannelPipeline.addLast(group, handler), which pins a channel to one thread of the
 *         group and loses messages when the queue of that thread is full.
 */
#ifndef HANDLERS_EXECUTOR_HANDLER_H
#define HANDLERS_EXECUTOR_HANDLER_H

#include "handlers/handler_type.h"

#include <stdint.h>

/* Pause reading above this, resume at half. Includes the overhead of each message. */
#define EXECUTOR_HANDLER_BYTES (64 * 1024)

struct executor_handler_conf {
    int64_t delay_ns; /* per message, on an executor thread */
};

/* `executor`, by pipeline_conf.executor */
extern const struct handler_type executor_handler_type;

#endif
