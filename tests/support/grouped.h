/*
 * support/grouped: an upstream of a few servers.
 *
 * Thread: the test's, unless it says otherwise
 */
#ifndef SUPPORT_GROUPED_H
#define SUPPORT_GROUPED_H

#include <stdbool.h>
#include <stdint.h>

#include "upstream/upstream.h"

struct upstream_server;

#define SERVERS 4

struct grouped {
    struct address address;
    struct upstream_server_conf servers[SERVERS];
    struct upstream_conf conf;
    struct upstream *upstream;
};

extern struct grouped grouped;

struct upstream_server *grouped_server_at(unsigned i);

void grouped_setup(void);

void grouped_open_group(unsigned n);

void grouped_teardown(void);

uint32_t grouped_active(unsigned i);

uint32_t grouped_active_in_all(void);

/* The server of a new session, NULL if there is none for the reason ${error}. */
struct upstream_server *grouped_pick(int error);

/* A session that was sent to server ${i}, in whatever way. */
void grouped_visit(unsigned i, enum upstream_outcome outcome);

bool grouped_is_out(unsigned i);

#endif
