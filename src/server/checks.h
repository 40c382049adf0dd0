/* server/checks: health checks of all upstreams; evicts the sessions of a server that goes down. */
#ifndef SERVER_CHECKS_H
#define SERVER_CHECKS_H

#include <stdint.h>

#include "base/must.h"

struct checks;
struct loop;
struct loop_group;
struct upstream;
struct worker;

/* Servers to assume for a name that is not resolved yet. */
#define CHECKS_OF_A_NAME 16

struct checks_conf {
    struct loop *control;
    struct upstream **upstreams;
    unsigned n_upstreams;
    unsigned max_under_way; /* descriptors for checks; at least 1 */
    struct loop_group *loops;
    struct worker **workers;
};

/*
 * checks_at_a_time(upstreams, n, max):
 * Estimate how many checks run at a time, at most ${max} (at least 1); 0: no server is checked.
 *
 * Thread: any
 */
unsigned checks_at_a_time(struct upstream *const *upstreams, unsigned n, unsigned max);

/*
 * checks_create(out, conf):
 * Prepare the checks.
 *
 * Thread: before start
 * Owns:   ${conf} is copied, what it points at is borrowed
 * Errors: 0; -ENOMEM
 */
int checks_create(struct checks **out, const struct checks_conf *conf) NODISCARD;

/*
 * checks_start(c, wait_ns):
 * Start checking; wait up to ${wait_ns} for the first checks of servers with initial_state =
 * checked.
 *
 * Thread: main
 * Errors: 0; as loop_submit()
 */
int checks_start(struct checks *c, int64_t wait_ns) NODISCARD;

/*
 * checks_destroy(c):
 * Free ${c} or NULL.
 *
 * Thread: main, while the control loop does not run
 */
void checks_destroy(struct checks *c);

#endif
