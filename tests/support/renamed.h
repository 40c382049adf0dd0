/*
 * support/renamed: a resolver whose names change with a configuration.
 *
 * Thread: the test's, unless it says otherwise
 */
#ifndef SUPPORT_RENAMED_H
#define SUPPORT_RENAMED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "balance/upstream_server.h"
#include "names/resolver.h"
#include "upstream/upstream.h"

struct executor;
struct loop;
struct resolver;
struct resolver_change;

#define UPSTREAMS 4
#define THREADS   4
#define LATER     (1000 * NS_PER_S)
/* What the name of each upstream gives: so many addresses, an error, or nothing for a while. */
#define SILENT 0

/* Addresses with this port lead back. */
struct proxy_loop {
    unsigned port;
    atomic_int references;
};

/* A configuration of an upstream, of one line or two. */
struct version {
    struct upstream_conf conf;
    struct upstream_server_conf lines[2]; /* the second: see add_literal() */
};

/* Upstreams as bits. */
struct wanted {
    unsigned bits;
    int64_t wait_ns;
    struct proxy_loop *listeners;
    int rc;
};

struct look {
    unsigned upstream;
    unsigned n; /* servers with an address */
    unsigned port;
};

struct renamed {
    atomic_int answers[UPSTREAMS];
    atomic_uint lookups[UPSTREAMS], running;
    atomic_uint shift; /* what is added to all ports */
    struct proxy_loop listeners[2];
    struct version pool[UPSTREAMS + 8], *now[UPSTREAMS];
    unsigned n_pool;
    bool is_other[UPSTREAMS];
    char texts[UPSTREAMS][16], names[UPSTREAMS][16];
    struct upstream *upstreams[UPSTREAMS];
    struct executor *executor;
    struct loop *control;
    struct resolver_conf conf;
    struct resolver *resolver;
    struct resolver_change *change;
    atomic_uint n_ready;
    atomic_int ready_error;
};

extern struct renamed renamed;

void renamed_setup(void);

int renamed_try_prepare(void *cookie);

int renamed_prepare_with(unsigned bits, int64_t wait_ns, struct proxy_loop *p);

void renamed_prepare(unsigned bits);

void renamed_until_ready(unsigned n);

void renamed_commit(void);

void renamed_cancel(void);

/* A resolver for the first upstream; all exist. */
void renamed_start(void);

void renamed_teardown(void);

void renamed_do_look(void *arg);

/* How many servers of upstream ${i} have an address. */
unsigned renamed_known(unsigned i);

#endif
