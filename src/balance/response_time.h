/*
 * balance/response_time: how fast an endpoint connects and answers, for BALANCER_LEAST_TIME.
 *
 * Two moving averages: the time to connect, and the time until the first byte of the answer. Each
 * measurement counts an eighth, and a quarter if it is above the average, so that a slow endpoint
 * is noticed after one or two; after a pause it counts more. A wait that goes on counts as soon as
 * it is above the average: an endpoint that stalls is left before its first late answer.
 *
 * A difference between two endpoints fades with the age of the older measurement: it halves every
 * RESPONSE_TIME_HALF_NS. So one that was slow is tried again, and one without a measurement counts
 * as the other.
 *
 * note: estimates. Workers load and store the members relaxed, without a lock. A measurement that
 * is lost between two others, or an average seen with the time of the one before, changes an
 * estimate a little, for as long as the next measurement takes; nothing else depends on them.
 *
 * Source: Finagle, PeakEwma; Envoy, contrib peak_ewma; nginx, least_time inflight
 */
#ifndef BALANCE_RESPONSE_TIME_H
#define BALANCE_RESPONSE_TIME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define RESPONSE_TIME_HALF_BITS 33
#define RESPONSE_TIME_HALF_NS   (INT64_C(1) << RESPONSE_TIME_HALF_BITS) /* 8.6 s */

/* Zeroed: not measured. See note: estimates. */
struct response_time_wait {
    _Atomic uint64_t average_ns;
    _Atomic int64_t measured_at_ns; /* 0: never */
    _Atomic int64_t since_ns;       /* begin of the oldest wait since the last end; 0: none */
};

struct response_time {
    struct response_time_wait connect, first_byte;
};

/* An estimate for a comparison. */
struct response_time_estimate {
    uint64_t ns;
    int64_t age_ns; /* CLOCK_NEVER: not measured */
};

/*
 * response_time_began(w, now_ns) / response_time_ended(w, took_ns, now_ns):
 * A session begins to wait for the endpoint / has waited for ${took_ns}.
 */
void response_time_began(struct response_time_wait *w, int64_t now_ns);
void response_time_ended(struct response_time_wait *w, int64_t took_ns, int64_t now_ns);

/*
 * response_time_failed(w, began_at_ns, now_ns):
 * A session that waited since ${began_at_ns} gave up. Its time counts if it is above the average,
 * and no other wait has ended since.
 */
void response_time_failed(struct response_time_wait *w, int64_t began_at_ns, int64_t now_ns);

/* response_time_restore(w, average_ns, measured_at_ns): continue what another process measured. */
void response_time_restore(struct response_time_wait *w, uint64_t average_ns,
                           int64_t measured_at_ns);

/* response_time_is_measured(w) / response_time_average_ns(w): was it ever? / its average. */
static inline bool response_time_is_measured(const struct response_time_wait *w)
{
    return atomic_load_explicit(&w->measured_at_ns, memory_order_relaxed) != 0;
}

static inline uint64_t response_time_average_ns(const struct response_time_wait *w)
{
    return atomic_load_explicit(&w->average_ns, memory_order_relaxed);
}

/* response_time_estimate(t, now_ns): both waits together, with those that go on. */
struct response_time_estimate response_time_estimate(const struct response_time *t, int64_t now_ns);

/*
 * response_time_compare(a, b):
 * Make ${a} and ${b} comparable: their difference fades, and neither is 0.
 */
void response_time_compare(struct response_time_estimate *a, struct response_time_estimate *b);

#endif
