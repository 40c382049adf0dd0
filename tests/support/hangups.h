/*
 * support/hangups: sockets of a loop that are not read, and what its hangup watch says of them.
 *
 * Thread: the test's, unless it says otherwise
 */
#ifndef SUPPORT_HANGUPS_H
#define SUPPORT_HANGUPS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "net/hangup.h"

struct loop;

#define WATCHES 200

struct place {
    struct hangup_watch watch;
    atomic_uint events;
    int ours, theirs;
    bool leave_others; /* in its event */
    bool was_hung_up;  /* as read on the loop */
};

struct hangups {
    struct loop *loop;
    struct hangup hangup;
    struct place places[WATCHES];
};

extern struct hangups hangups;

void hangups_on_hangup(struct hangup_watch *w);

void hangups_do_listen(void *arg);

void hangups_do_leave(void *arg);

bool hangups_registered(const struct place *p);

void hangups_setup(void);

void hangups_teardown(void);

/* A socket that is paused, with a TCP peer, or a unix one. */
struct place *hangups_paused(unsigned i, bool unix_peer);

struct place *hangups_registered_place(unsigned i, bool unix_peer);

void hangups_reset(struct place *p);

void hangups_do_listen_end(void *arg);

void hangups_do_reset_all(void *arg);

#endif
