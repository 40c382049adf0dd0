/*
 * server/autoscale_plan: how many workers the load needs (`threads = auto` of [worker]): from the
 * given loads alone.
 *
 * The load is the time that all workers spend outside their polls. More workers come at once, after
 * a few seconds; one goes at a time, after ten. A change begins the measuring anew, so the next one
 * knows what it did.
 *
 *   load per worker   0 %        50 %           70 %        100 %
 *                      |  one less |     stays     |  more    |
 *                       (if then still below 50 %)  (until it would be 50 %)
 */
#ifndef SERVER_AUTOSCALE_PLAN_H
#define SERVER_AUTOSCALE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/* Times over which the load is judged; interval of samples. */
#define AUTOSCALE_PLAN_UP_NS   (3 * NS_PER_S)
#define AUTOSCALE_PLAN_DOWN_NS (10 * NS_PER_S)
#define AUTOSCALE_PLAN_LOOK_NS NS_PER_S

/* Load of one worker, in percent: above HIGH there are too few, FAIR is what a change aims at. */
#define AUTOSCALE_PLAN_HIGH 70
#define AUTOSCALE_PLAN_FAIR 50

/* One sample for each interval of AUTOSCALE_PLAN_DOWN_NS, and its beginning. */
#define AUTOSCALE_PLAN_SAMPLES 11

struct autoscale_plan_sample {
    int64_t at_ns;
    int64_t busy_ns; /* of all workers together, since any instant */
};

/* Zeroed: no samples. */
struct autoscale_plan {
    unsigned n, min, max; /* workers in use; their limits */
    unsigned n_samples;
    struct autoscale_plan_sample samples[AUTOSCALE_PLAN_SAMPLES]; /* the oldest first */
};

struct autoscale_wish {
    unsigned n;       /* workers to use */
    unsigned percent; /* load per worker now; and over which time */
    int64_t over_ns;
};

/* autoscale_plan_add(p, sample): take a sample, unless the last one is too young. */
void autoscale_plan_add(struct autoscale_plan *p, const struct autoscale_plan_sample *sample);

/* autoscale_plan_wish(p, wish): true: the load needs another number of workers than p->n. */
bool autoscale_plan_wish(const struct autoscale_plan *p, struct autoscale_wish *wish);

#endif
