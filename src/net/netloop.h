/*
 * net/netloop: what the sockets of one loop share: the loop itself, the buffer that reads go to,
 * and pipes.
 *
 * Nothing of it is a connection's own, so that a connection knows its loop through this one pointer
 * only.
 */
#ifndef NET_NETLOOP_H
#define NET_NETLOOP_H

#include <stdint.h>

#include "base/must.h"
#include "engine/loop.h"
#include "net/pipe_pool.h"

/*
 * One read takes this much at most; measured, more gains nothing that splice does not gain better.
 */
#define NETLOOP_SCRATCH_BYTES (64 * 1024)

struct memory_account;
struct descriptor_budget;

struct netloop {
    struct loop *loop;
    struct ev_loop *ev;
    uint8_t *scratch; /* contents last until the next read on this loop */
    struct pipe_pool pipes;
    struct descriptor_budget *descriptors; /* what they are counted in; NULL: nowhere */
    struct memory_account *buffered;       /* what bytes that wait are counted in; NULL: nowhere */
};

/*
 * netloop_create(out, loop):
 * What sockets on ${loop} need.
 *
 * Thread: any
 * Owns:   the caller owns ${out}; ${loop} is borrowed
 * Errors: 0; -ENOMEM
 */
int netloop_create(struct netloop **out, struct loop *loop) NODISCARD;

/*
 * netloop_destroy(net):
 * Free it; NULL is allowed.
 *
 * Thread: loop, or after the loop has ended
 */
void netloop_destroy(struct netloop *net);

#endif
