/*
 * net/netloop: resources shared by the sockets of a loop.
 */
#ifndef NET_NETLOOP_H
#define NET_NETLOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/must.h"
#include "engine/loop.h"
#include "net/event_load.h"
#include "net/hangup.h"
#include "net/pipe_pool.h"

/* Largest read. */
#define NETLOOP_SCRATCH_BYTES (64 * 1024)

/* Age from which a session counts as established. */
#define NETLOOP_YOUNG_NS NS_PER_S

struct memory_account;
struct descriptor_budget;

struct netloop {
    struct loop *loop;
    struct ev_loop *ev;
    uint8_t *scratch; /* valid until the loop's next read */
    struct event_timing timing;
    struct pipe_pool pipes;
    struct hangup hangup;                  /* see net/hangup.h */
    struct descriptor_budget *descriptors; /* NULL: not counted */
    struct memory_account *buffered;       /* NULL: not charged */
    int64_t oldest_at_ns; /* begin of the oldest session; CLOCK_NEVER: none; 0: unknown */
};

/*
 * netloop_create(out, loop):
 * Create the netloop of ${loop}.
 *
 * Owns:   the caller owns ${out}; ${loop} must outlive it
 * Errors: 0; -ENOMEM; -EMFILE, -ENFILE
 */
int netloop_create(struct netloop **out, struct loop *loop) NODISCARD;

/*
 * netloop_destroy(net):
 * Free ${net} or NULL.
 *
 * Thread: any, when the loop has ended or never started
 */
void netloop_destroy(struct netloop *net);

/*
 * netloop_is_young(net):
 * Is each session of this loop younger than NETLOOP_YOUNG_NS?
 *
 * Thread: loop
 */
static inline bool netloop_is_young(const struct netloop *net)
{
    return loop_now_ns(net->loop) - net->oldest_at_ns < NETLOOP_YOUNG_NS;
}

#endif
