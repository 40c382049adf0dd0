/*
 * support/kept: an upstream's pool of spare connections on a loop.
 *
 * Thread: the test's, unless it says otherwise
 */
#ifndef SUPPORT_KEPT_H
#define SUPPORT_KEPT_H

#include <stdint.h>

#include "net/descriptor_budget.h"
#include "spare/spare_internal.h"

struct loop;
struct upstream;
struct upstream_server;

#define KEEP  3
#define MANY  16         /* enough for one to draw nearly all of the jitter */
#define PLACE (MANY + 1) /* space for those that a test has accepted */

struct take {
    int fd;
    struct address address;
};

struct kept {
    struct address address;
    struct upstream_server_conf server_conf;
    struct upstream_conf conf;
    struct upstream *upstream;
    struct upstream_server *server;
    struct loop *loop;
    struct descriptor_budget descriptors;
    struct spare_pool *pool;
    int listening, accepted[PLACE];
    unsigned n_accepted, before;
};

extern struct kept kept;

void kept_setup(void);

void kept_open_pool(void);

void kept_do_stop(void *arg);

void kept_teardown(void);

uint64_t kept_counted(enum spare_count what);

unsigned kept_idle(void);

void kept_accept_some(unsigned n);

void kept_close_accepted(void);

void kept_do_take(void *arg);

int kept_take(void);

#endif
