/*
 * support/lookups: a resolver whose lookups the test answers.
 *
 * Thread: the test's, unless it says otherwise
 */
#ifndef SUPPORT_LOOKUPS_H
#define SUPPORT_LOOKUPS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "balance/upstream_server.h"
#include "names/resolver.h"
#include "support/suite.h"
#include "upstream/upstream.h"

struct dns_terms;
struct executor;
struct loop;
struct resolver;
struct srv_record;

#define NAMES 40
#define LATER (1000 * NS_PER_S)
/*
 * What a lookup of each name gives: so many addresses, an error, or nothing until something is set.
 */
#define SILENT 0

struct lookups {
    atomic_int answers[NAMES];
    atomic_bool only_once; /* no second lookup has an answer */
    atomic_uint shift;     /* what is added to all ports: the servers have moved */
    atomic_uint lookups[NAMES], running, most_running;
    _Atomic int64_t looked_up_at_ns;
    _Atomic int64_t ttl_ns;                /* of all answers */
    _Atomic int64_t second_at_ns[NAMES];   /* of the second lookup */
    atomic_uint order, first_order[NAMES]; /* the first lookups, from 1 on */
    struct upstream_server_conf server_confs[NAMES];
    char texts[NAMES][16], ids[NAMES][16];
    struct upstream_conf upstream_conf;
    struct upstream *upstream;
    struct executor *executor;
    struct loop *control;
    struct resolver_conf conf;
    struct resolver *resolver;
    struct upstream_next upstream_next;
    atomic_uint loop_port; /* addresses with this port lead back; 0: none does */
    atomic_int n_records;
};

extern struct lookups lookups;

/*
 * A name is its number as text; address i of name n has the port 1000 + 100 n + i, and ${shift}
 * more.
 */
struct upstream_server *lookups_server_at(unsigned i);

void lookups_setup(void);

/* A resolver for the first ${n} names. */
void lookups_create(unsigned n, unsigned threads);

int lookups_try_start(int64_t wait_ns);

void lookups_start(unsigned n, int64_t wait_ns);

void lookups_end_control(void);

void lookups_end_executor(void);

void lookups_teardown(void);

/* How many addresses of server ${n} are known. */
unsigned lookups_known(unsigned n);

bool lookups_is_known(unsigned n);

/* The port of its address ${i}; 0: there is none. */
unsigned lookups_port_of(unsigned n, unsigned i);

/* On the control loop, which has scheduled the next lookups: when they are due. */
void lookups_read_due(void *arg);

/* Wait until name ${n} was looked up and answered ${more} times more. */
void lookups_pass_lookups(unsigned n, unsigned more);

int lookups_look_up_service(struct srv_record *out, size_t max, const char *name,
                            struct dns_terms *terms);

void lookups_name_is(unsigned n, enum upstream_names names);

void lookups_record(unsigned i, const char *target, unsigned priority, unsigned weight);

void lookups_start_service(int n);

#endif
