/*
 * handlers/executor_handler: what is read goes through a thread of the executor, in order, before
 * the rest of the pipeline gets it; the place for work on a client's bytes that would hold up the
 * loop.
 *
 *   loop: read -> [message] -> serial ... executor: work -> [done] -> loop: read of the next
 *   handler
 *
 * Each read is a message, and comes out as one. Messages of one client never overlap and keep their
 * order, on whichever threads; no thread is reserved. The end of file waits for the messages before
 * it. When too much is under way, or the executor is full, the client is not read until there is
 * room: nothing is dropped. Memory is bounded by EXECUTOR_HANDLER_BYTES and one more read of the
 * channel, each of whose frames, behind `frame`, is a message of its own.
 *
 * As it comes the work is to wait for `delay_ns`, which shows how clients and servers do with a
 * slow service; what else is to be done with a message goes into executor_work().
 *
 * Source: Netty ChannelPipeline.addLast(group, handler); there a channel is tied to one thread of
 *         the group, behind whatever
 * else is, and what is too much for its queue is lost.
 */
#ifndef HANDLERS_EXECUTOR_HANDLER_H
#define HANDLERS_EXECUTOR_HANDLER_H

#include "handlers/handler_type.h"

#include <stdint.h>

/*
 * Above this the client is not read, until it is half of it again. Counted with what a message
 * takes itself.
 */
#define EXECUTOR_HANDLER_BYTES (64 * 1024)

struct executor_handler_conf {
    int64_t delay_ns; /* for each message, on a thread of the executor */
};

/* `executor`, by pipeline_conf.executor */
extern const struct handler_type executor_handler_type;

#endif
