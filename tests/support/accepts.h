/*
 * support/accepts: an acceptor on a loop, and what it accepted.
 *
 * Thread: the test's
 */
#ifndef SUPPORT_ACCEPTS_H
#define SUPPORT_ACCEPTS_H

#include <stdatomic.h>
#include <stdint.h>

#include "net/acceptor.h"
#include "net/address.h"

#define ACCEPTS_BATCH   16
#define ACCEPTS_CLIENTS 128

struct accepts {
    struct loop *loop;
    struct acceptor *acceptor;
    struct address address;
    /* Of each client, written on the loop; the number is written last. */
    int fds[ACCEPTS_CLIENTS];
    uint64_t turns[ACCEPTS_CLIENTS]; /* of the loop */
    struct address peers[ACCEPTS_CLIENTS];
    atomic_uint arrived;
    unsigned stop_after;  /* clients, in the callback of the last; 0: never */
    atomic_uint admitted; /* clients; the next ones are refused */
    int64_t refusal;      /* of acceptor_ops.admit */
    atomic_uint nobody;   /* calls */
};

extern struct accepts accepts;

/*
 * accepts_enter() / accepts_leave():
 * Checked fixtures: an acceptor that is not started, with ACCEPTOR_EXHAUSTED as refusal; stop it,
 * and see that no descriptor is left. Lines of the log are captured from LOG_LEVEL_NOTICE on.
 *
 * Errors: the test fails
 */
void accepts_enter(void);
void accepts_leave(void);

/*
 * accepts_start() / accepts_stop():
 * acceptor_start() on the loop; acceptor_stop(), twice.
 */
void accepts_start(void);
void accepts_stop(void);

#endif
