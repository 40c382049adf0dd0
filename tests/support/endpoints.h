/*
 * support/endpoints: a group of endpoints without a network, and picking among them.
 */
#ifndef SUPPORT_ENDPOINTS_H
#define SUPPORT_ENDPOINTS_H

#include "balance/balancer.h"

struct endpoints {
    unsigned n;
    struct endpoint *all;    /* all[i] is known by i */
    struct endpoint **list;  /* in the order of the configuration */
    _Atomic uint32_t *loads; /* side by side */
    struct endpoint_group group;
    struct balancer_conf conf; /* for endpoints_balancer(); a test may change it */
};

/*
 * endpoints_open(es, n) / endpoints_close(es):
 * ${n} of them, each of weight 1, fit, not full and no backup. Free them.
 *
 * Thread: the test's
 * Errors: the test fails
 */
void endpoints_open(struct endpoints *es, unsigned n);
void endpoints_close(struct endpoints *es);

/*
 * endpoints_weights(es, weights):
 * Give them these weights, as many as there are.
 *
 * Thread: the test's
 */
void endpoints_weights(struct endpoints *es, const unsigned *weights);

/*
 * endpoints_balancer(es, kind):
 * A balancer over `list`, otherwise as `conf` says.
 *
 * Thread: the test's
 * Owns:   the caller destroys it
 * Errors: the test fails
 */
struct balancer *endpoints_balancer(struct endpoints *es, enum balancer_kind kind);

/*
 * endpoints_next(es, b, walk) / endpoints_pick(es, b, key):
 * The number of what balancer_pick() gives, for ${walk} or for a new session; entered. Or its
 * error.
 *
 * Thread: any
 * Errors: as balancer_pick()
 */
int endpoints_next(struct endpoints *es, struct balancer *b, struct balancer_pick_state *walk);
int endpoints_pick(struct endpoints *es, struct balancer *b, uint64_t key);

/*
 * endpoints_touch(es, b, key):
 * As endpoints_pick(), and the session ends at once.
 *
 * Thread: any
 * Errors: as balancer_pick()
 */
int endpoints_touch(struct endpoints *es, struct balancer *b, uint64_t key);

/*
 * endpoints_leave_all(es):
 * End all sessions.
 *
 * Thread: the test's, when no other one picks
 */
void endpoints_leave_all(struct endpoints *es);

#endif
