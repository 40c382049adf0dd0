/*
 * support/changing: an upstream whose configuration changes.
 *
 * Thread: the test's, unless it says otherwise
 */
#ifndef SUPPORT_CHANGING_H
#define SUPPORT_CHANGING_H

#include <stdint.h>

#include "upstream/upstream.h"

struct membership;
struct upstream_change;
struct upstream_server;

#define SERVERS 4

struct changing {
    struct address addresses[SERVERS + 1]; /* of the servers, and one more */
    struct upstream_server_conf servers[SERVERS], next_servers[SERVERS];
    struct upstream_conf conf, next;
    struct upstream *upstream;
    struct upstream_change *change;
    unsigned n_came, n_went, n_changed;
};

extern struct changing changing;

void changing_setup(void);

/* A test changes `next`, and `next_servers`, before change_all(). */
void changing_open_group(void);

void changing_teardown(void);

void changing_prepare(void);

void changing_change_all(void);

struct membership *changing_members(void);

struct upstream_server *changing_server_at(unsigned i);

const char *changing_names(void);

unsigned changing_remembered(void);

struct upstream_server *changing_pick(int error);

uint32_t changing_load(const struct upstream_server *server);

int changing_give_places(const char *id, const char *text);

void changing_on_changed(void *cookie, struct upstream_server *server);

#endif
