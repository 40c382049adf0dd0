/*
 * support/stored: listeners whose sockets a store keeps.
 *
 * Thread: the test's, unless it says otherwise
 */
#ifndef SUPPORT_STORED_H
#define SUPPORT_STORED_H

#include <stdatomic.h>
#include <stdbool.h>

#include "listen/listener.h"
#include "listen/socket_store.h"
#include "net/sock.h"

struct listeners;
struct listeners_change;

struct stored {
    const struct sock_listen_conf shared;
    struct listeners *listeners;
    struct address a;
    struct listener_conf conf;
    atomic_uint accepted, stopped;
    unsigned n_given, n_kept, n_forgotten;
    bool keeps, forgets;
    struct socket_store store;
};

extern struct stored stored;

void stored_setup(void);

int stored_prepare(struct listeners_change **change, unsigned n);

/* With the listener, or without. */
void stored_configure(unsigned n);

void stored_end_boss(void);

void stored_teardown(void);

/* What the store gives out. */
void stored_give(int fd);

int stored_give_path(void);

bool stored_has_file(void);

/* Clients that come and go; one that is accepted is reset, perhaps before connect(2) returns. */
void stored_knock(unsigned n);

void stored_open_path(void);

#endif
