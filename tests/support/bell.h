/*
 * support/bell: a descriptor that a loop watches and a test makes ready.
 */
#ifndef SUPPORT_BELL_H
#define SUPPORT_BELL_H

#include <ev.h>
#include <stdatomic.h>

#include "engine/loop.h"

struct bell {
    struct ev_io io;
    struct loop *loop;
    void (*heard)(
        struct bell *b); /* called on the loop each time it was rung; NULL: only counted */
    atomic_uint n_heard;
    atomic_uint n_errors; /* it could not be watched, and is not any more */
};

/*
 * bell_open(b, loop, heard) / bell_close(b):
 * Have ${loop} watch a fresh bell; no longer watch it, and close its descriptor.
 *
 * Thread: any but the loop's
 * Errors: none (the test fails)
 */
void bell_open(struct bell *b, struct loop *loop, void (*heard)(struct bell *b));
void bell_close(struct bell *b);

/*
 * bell_ring(b):
 * Make it ready.
 *
 * Thread: any
 * Errors: none (the test fails)
 */
void bell_ring(struct bell *b);

/*
 * bell_expect_heard(b):
 * Ring it and wait until it is heard, once.
 *
 * Thread: any but the loop's
 * Errors: the test fails
 */
void bell_expect_heard(struct bell *b);

/*
 * bell_watch(b):
 * Have the loop watch it again, after an error.
 *
 * Thread: any but the loop's
 */
void bell_watch(struct bell *b);

#endif
