/*
 * net/pipeline: the handlers of a channel, in order.
 *
 *   channel (the socket)   head <-> handler <-> ... <-> tail (the service: echo or proxy)
 *       inbound  ->  read, eof, writable, closed: from head to tail
 *       outbound <-  write, shutdown_write: from before the tail to head, then to the socket
 *
 * All of it happens on the channel's loop.
 */
#ifndef NET_PIPELINE_H
#define NET_PIPELINE_H

#include "base/must.h"
#include "net/handler.h"

struct pipeline {
    struct handler *head;
    struct handler *tail;
};

/*
 * pipeline_init(p, ch, tail, ops):
 * A pipeline of one handler, the service's.
 *
 * Thread: before the channel is started
 * Owns:   nothing; ${tail} must live as long as ${ch}
 */
void pipeline_init(struct pipeline *p, struct channel *ch, struct handler *tail,
                   const struct handler_ops *ops);

/*
 * pipeline_set_tail(p, ops):
 * The tail does something else from now on; the handlers before it stay.
 *
 * Thread: loop of the channel
 */
void pipeline_set_tail(struct pipeline *p, const struct handler_ops *ops);

/*
 * pipeline_add(p, h, ops):
 * Put ${h} before the tail, behind the handlers added earlier. It hears of what happens from now
 * on.
 *
 * Thread: loop of the channel, or before it is started
 * Owns:   nothing; ${h} must live until it is removed or the channel is gone
 */
void pipeline_add(struct pipeline *p, struct handler *h, const struct handler_ops *ops);

/*
 * pipeline_remove(p, h):
 * Take ${h}, not the tail, out; allowed at any moment, from its own operations too. It hears of
 * nothing any more, but can still pass on what it has. Without the last handler, bytes may be
 * spliced again.
 *
 * Thread: loop of the channel
 * Owns:   nothing; ${h} must live until the event that the channel is in is over
 */
void pipeline_remove(struct pipeline *p, struct handler *h);

/*
 * pipeline_held_bytes(p) / pipeline_reclaim(p):
 * The memory of bytes that its handlers keep; have them give up what the connection can do without:
 * how much it was.
 *
 * Thread: loop of the channel
 * Units:  bytes
 */
size_t pipeline_held_bytes(const struct pipeline *p);
size_t pipeline_reclaim(struct pipeline *p);

#endif
