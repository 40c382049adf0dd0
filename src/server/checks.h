/*
 * server/checks: the health checks of all upstreams, on the control loop, and what is done when a
 * server goes down.
 */
#ifndef SERVER_CHECKS_H
#define SERVER_CHECKS_H

#include <stdint.h>

#include "base/must.h"

struct checks;
struct loop;
struct loop_group;
struct upstream;
struct worker;

/* A name may be so many servers, when nobody has looked it up yet. */
#define CHECKS_OF_A_NAME 16

struct checks_conf {
    struct loop *control;
    struct upstream **upstreams;
    unsigned n_upstreams;
    unsigned max_under_way; /* descriptors that checks may have; at least 1 */
    struct loop_group *loops;
    struct worker **workers;
};

/*
 * checks_at_a_time(upstreams, n, max):
 * How many checks there may well be under way at a time, but no more than ${max} (at least 1); 0:
 * no server is to be checked.
 *
 * Thread: any
 */
unsigned checks_at_a_time(struct upstream *const *upstreams, unsigned n, unsigned max);

/*
 * checks_create(out, conf):
 * Get ready; nothing is checked yet.
 *
 * Thread: before start
 * Owns:   the caller owns ${out}; ${conf} is copied, what it points at is borrowed
 * Errors: 0; -ENOMEM
 */
int checks_create(struct checks **out, const struct checks_conf *conf) NODISCARD;

/*
 * checks_start(c, wait_ns):
 * Begin to check, and wait for the first checks of the servers with initial_state = checked, up to
 * ${wait_ns}.
 *
 * Thread: main
 * Units:  ns
 * Errors: 0; as loop_submit()
 */
int checks_start(struct checks *c, int64_t wait_ns) NODISCARD;

/*
 * checks_destroy(c):
 * Free it; NULL is allowed.
 *
 * Thread: main, after the control loop has ended or was never started
 */
void checks_destroy(struct checks *c);

#endif
