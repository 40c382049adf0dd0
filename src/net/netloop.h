/*
 * net/netloop: resources shared by the sockets of a loop, and a connection's only way to its loop.
 */
#ifndef NET_NETLOOP_H
#define NET_NETLOOP_H

#include <stdint.h>

#include "base/must.h"
#include "engine/loop.h"
#include "net/hangup.h"
#include "net/pipe_pool.h"

/* Largest read. */
#define NETLOOP_SCRATCH_BYTES (64 * 1024)

struct memory_account;
struct descriptor_budget;

struct netloop {
    struct loop *loop;
    struct ev_loop *ev;
    uint8_t *scratch; /* valid until the loop's next read */
    struct pipe_pool pipes;
    struct hangup hangup;                  /* of sockets that are not read */
    struct descriptor_budget *descriptors; /* NULL: not counted */
    struct memory_account *buffered;       /* NULL: not charged */
};

/*
 * netloop_create(out, loop):
 *
 * Thread: any
 * Owns:   the caller owns ${out}; ${loop} is borrowed
 * Errors: 0; -ENOMEM; -EMFILE, -ENFILE
 */
int netloop_create(struct netloop **out, struct loop *loop) NODISCARD;

/*
 * netloop_destroy(net):
 * Free ${net} or NULL.
 *
 * Thread: any; the loop has ended
 */
void netloop_destroy(struct netloop *net);

#endif
