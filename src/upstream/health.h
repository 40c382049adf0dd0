/*
 * upstream/health: is a server up, as its checks tell, and when is the next one due?
 *
 *         fall failures in a row                      rise successes in a row
 *   UP ---------------------------> DOWN       DOWN -------------------------> UP
 *
 * A server begins UP, so that a start does not have to wait for checks (HAProxy does the same), or
 * DOWN, or it is CHECKED first: then it is not up until its first check, which decides. Pure: no
 * clock, no sockets, and no randomness but what it was seeded with.
 */
#ifndef UPSTREAM_HEALTH_H
#define UPSTREAM_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"

enum health_initial { HEALTH_STARTS_UP, HEALTH_STARTS_DOWN, HEALTH_STARTS_CHECKED };

struct health_conf {
    enum health_initial initial;
    unsigned rise;            /* at least 1 */
    unsigned fall;            /* at least 1 */
    int64_t interval_ns;      /* from the beginning of a check to that of the next */
    int64_t fast_interval_ns; /* while a streak may change the state; 0: interval_ns */
    unsigned jitter_percent;  /* an interval is made up to so much longer, never shorter */
};

struct health {
    const struct health_conf *conf;
    uint64_t random;
    unsigned streak; /* checks in a row that spoke against the state */
    bool is_up;
    bool is_decided;     /* by a check; or it begins up or down */
    int64_t since_at_ns; /* in this state */
};

/* STAYS_DOWN: the first check of a server that is CHECKED has failed. */
enum health_change { HEALTH_SAME, HEALTH_CAME_UP, HEALTH_WENT_DOWN, HEALTH_STAYS_DOWN };

/*
 * health_init(h, conf, seed, now_ns):
 * A server in the state that ${conf} says. Servers with different ${seed}s have their own jitter.
 *
 * Thread: owner of ${h}
 * Owns:   ${conf} is borrowed
 */
void health_init(struct health *h, const struct health_conf *conf, uint64_t seed, int64_t now_ns);

/*
 * health_report(h, passed, now_ns):
 * A check has passed, or failed. One that says nothing about the server is not reported.
 *
 * Thread: owner of ${h}
 */
enum health_change health_report(struct health *h, bool passed, int64_t now_ns);

/*
 * health_first_ns(conf, nth):
 * How long the ${nth} server (0, 1, ...) waits for its first check, less than an interval. However
 * many there come to be, they are spread evenly over the interval; the first is checked at once.
 *
 * Thread: any
 * Units:  ns
 * Source: multiples of the golden ratio (Weyl 1916; the three-gap theorem, Sos 1958)
 */
int64_t health_first_ns(const struct health_conf *conf, uint64_t nth);

/*
 * health_interval_ns(h):
 * How long from the beginning of the last check to that of the next; drawn anew at each call.
 *
 * Thread: owner of ${h}
 * Units:  ns, at least the interval that applies
 */
int64_t health_interval_ns(struct health *h);

#endif
