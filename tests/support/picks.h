/*
 * support/picks: endpoints, and balancers of all kinds that pick among them.
 *
 * Thread: the test's, unless it says otherwise
 */
#ifndef SUPPORT_PICKS_H
#define SUPPORT_PICKS_H

#include "support/endpoints.h"

struct balancer;

#define KINDS (BALANCER_FIRST + 1)

struct picks {
    struct endpoints es;
    struct balancer *b;
};

extern struct picks picks;

void picks_teardown(void);

/* How often each of ${picked} is picked by so many sessions that end at once. */
void picks_count(unsigned *picked, unsigned sessions);

/*
 * Does a session get to each of those that are not ABSENT, and to no other, before there is none?
 */
void picks_expect_walk(unsigned n);

#endif
