/*
 * net/pipeline: the handlers of a channel, in order, on its loop.
 *
 *   channel (the socket)   head <-> handler <-> ... <-> tail (the service: echo or proxy)
 *     inbound  ->  read, ended, writable: from head to tail
 *     outbound <-  write, shutdown_write: from before the tail to head, then to the socket
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
 * Initialize ${p} with the service's handler ${tail} only.
 *
 * Thread: loop, before channel_start()
 * Owns:   ${tail} must live as long as ${ch}
 */
void pipeline_init(struct pipeline *p, struct channel *ch, struct handler *tail,
                   const struct handler_ops *ops);

/* pipeline_set_tail(p, ops): replace the operations of the tail handler. Thread: loop */
void pipeline_set_tail(struct pipeline *p, const struct handler_ops *ops);

/*
 * pipeline_add(p, h, ops):
 * Insert ${h} before the tail. ${h} sees events from now on.
 *
 * Thread: loop
 * Owns:   ${h} must live until removed, or as long as the channel
 */
void pipeline_add(struct pipeline *p, struct handler *h, const struct handler_ops *ops);

/*
 * pipeline_remove(p, h):
 * Remove ${h}. An operation of ${h} may call this, and still pass its event on.
 *
 * Thread: loop
 * Owns:   ${h} must outlive the channel's current event
 */
void pipeline_remove(struct pipeline *p, struct handler *h);

/*
 * pipeline_held_bytes(p) / pipeline_reclaim(p):
 * Return the sum of the handlers' held() / call the handlers' reclaim() and return the sum.
 *
 * Thread: loop
 */
size_t pipeline_held_bytes(const struct pipeline *p);
size_t pipeline_reclaim(struct pipeline *p);

/*
 * pipeline_may_move(p) / pipeline_leave_loop(p) / pipeline_join_loop(p):
 * Ask the handlers' may_move(), true if all are / call their leave_loop() / their join_loop().
 *
 * Thread: loop
 */
bool pipeline_may_move(const struct pipeline *p);
void pipeline_leave_loop(struct pipeline *p);
void pipeline_join_loop(struct pipeline *p);

/*
 * pipeline_save(p, out, max) / pipeline_restore(p, states, n):
 * Save the handlers before the tail to ${out}, and return their number / restore those of another
 * process, which has ${n}, in the same order.
 *
 * Thread: loop
 * Errors: -ENOTSUP (a handler cannot be saved, or more than ${max}); as handler_ops.save() /
 *         0; -ESTALE (other handlers); as handler_ops.restore()
 */
int pipeline_save(const struct pipeline *p, struct handler_state *out, unsigned max);
int pipeline_restore(struct pipeline *p, const struct handler_state *states, unsigned n) NODISCARD;

#endif
