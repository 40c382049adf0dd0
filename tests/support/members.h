/*
 * support/members: the servers of an upstream, by what its names stand for.
 *
 * Thread: the test's, unless it says otherwise
 */
#ifndef SUPPORT_MEMBERS_H
#define SUPPORT_MEMBERS_H

#include "support/suite.h"
#include "upstream/upstream.h"

struct membership_place;
struct upstream_server;

#define LINES 3

struct members {
    struct address literal;
    struct upstream_server_conf lines[LINES]; /* an address, a name, another name */
    struct upstream_conf conf;
    struct upstream *upstream;
    struct upstream_env env;
};

extern struct members members;

void members_setup(void);

void members_open_group(void);

void members_teardown(void);

int members_update_places(unsigned line, const struct membership_place *places, unsigned n);

/* ${text} is the ports at which the servers of ${line} are, a digit each; what comes of it. */
int members_update(unsigned line, const char *text);

/* The names of all servers of now. */
const char *members_names(void);

struct upstream_server *members_find(const char *name);

struct upstream_server *members_pick(void);

#endif
