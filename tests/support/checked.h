/*
 * support/checked: a server's health checks, and upstreams that they are made for.
 *
 * Thread: the test's, unless it says otherwise
 */
#ifndef SUPPORT_CHECKED_H
#define SUPPORT_CHECKED_H

#include <stdatomic.h>
#include <stdint.h>

#include "service/service.h"
#include "upstream/upstream.h"

struct checks;
struct checks_change;
struct loop;
struct loop_group;
struct upstream_server;

#define SERVERS 2

struct checked {
    struct loop *control;
    struct loop_group *workers;
    struct checks *checks;
    struct checks_change *change;
    struct upstream *upstream;
    struct upstream_next next;
    struct upstream_conf conf;
    struct upstream_server_conf servers[SERVERS];
    struct address addresses[SERVERS];
    int fds[SERVERS]; /* server 0 listens, server 1 refuses */
    struct service service;
    atomic_uint ended;
    struct upstream_conf other_conf;
};

extern struct checked checked;

void checked_setup(void);

void checked_create(void);

/* As the server does: servers that start down are checked before the others. */
void checked_begin(int64_t wait_ns);

/* Without a warning: the first checks are decided, or none is waited for. */
void checked_start(void);

void checked_teardown(void);

struct upstream_server *checked_server_at(unsigned i);

uint32_t checked_flags_of(unsigned i);

int checked_prepare(void *cookie);

void checked_change_to(const struct upstream_conf *to);

#endif
