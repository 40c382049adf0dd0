/* server/checks: health checks of all upstreams, and eviction from a server that goes down. */
#ifndef SERVER_CHECKS_H
#define SERVER_CHECKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"

struct checks;
struct checks_change;
struct loop;
struct loop_group;
struct upstream_conf;
struct upstream_next;
struct upstream_server;
struct upstream_server_conf;
struct worker;

/* Servers to assume for a name that is not resolved yet. */
#define CHECKS_OF_A_NAME 16

struct checks_conf {
    struct loop *control;
    struct loop_group *loops;
    struct worker **workers;
};

/*
 * checks_at_a_time(list, n, max):
 * Estimate how many checks of ${n} upstreams run at a time, from 1 to ${max}; 0: no server is
 * checked, and none has an agent. A disabled server with an address counts: it may be enabled at
 * run time.
 */
unsigned checks_at_a_time(const struct upstream_next *list, unsigned n, unsigned max);

/*
 * checks_create(out, conf):
 * Create the checks, without upstreams.
 *
 * Thread: main, before start
 * Owns:   ${conf} is copied; control must outlive ${out}; loops and workers must live until control
 *         has ended
 * Errors: 0; -ENOMEM
 */
int checks_create(struct checks **out, const struct checks_conf *conf) NODISCARD;

/*
 * checks_prepare(c, list, n, at_a_time, out) / checks_commit(change) / checks_cancel(change):
 * Allocate for the checks of ${n} upstreams / check these upstreams only, by their new
 * configurations and at most ${at_a_time} at once / free what was allocated. Servers keep their
 * health. Commit after the upstreams have their new configurations.
 *
 * Thread: control loop
 * Owns:   ${list} is copied; the upstreams must live until a change commits without them; commit
 *         and cancel free ${change}
 * Errors: 0; -ENOMEM; -EMFILE, -ENFILE; as check_script_init() (logged)
 */
int checks_prepare(struct checks *c, const struct upstream_next *list, unsigned n,
                   unsigned at_a_time, struct checks_change **out) NODISCARD;
void checks_commit(struct checks_change *change);
void checks_cancel(struct checks_change *change);

/*
 * checks_try(change, i, conf, server, line) / checks_wait(change, max_ns, done, cookie) /
 * checks_end_trials(change):
 * checks_try: check ${server} by its new ${line} before the commit of ${change}; it is down until
 * it passes. ${i} and ${conf}: index in ${list} and next configuration of its upstream, which has
 * checks.
 * checks_wait: call ${done} when all these servers have a result, or after some seconds (logged),
 * at most ${max_ns}. False: they have; ${done} is not called.
 * checks_end_trials: end these checks; the servers stay down. checks_commit() continues them.
 *
 * Thread: control loop
 * Owns:   ${server} and ${line} must live until commit or checks_end_trials()
 * Errors: 0; -ENOMEM; -ESHUTDOWN
 */
int checks_try(struct checks_change *change, unsigned i, const struct upstream_conf *conf,
               struct upstream_server *server, const struct upstream_server_conf *line) NODISCARD;
bool checks_wait(struct checks_change *change, int64_t max_ns, void (*done)(void *cookie),
                 void *cookie) NODISCARD;
void checks_end_trials(struct checks_change *change);

/*
 * checks_destroy(c):
 * Free ${c}; NULL is allowed.
 *
 * Thread: main, while the control loop does not run
 */
void checks_destroy(struct checks *c);

#endif
