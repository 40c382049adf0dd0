#include "balance/response_time.h"

#include "base/clock.h"

/* Weights of a measurement, in 2^16ths: at least an eighth, or a quarter if above the average. */
#define RESPONSE_TIME_ONE  (UINT64_C(1) << 16)
#define RESPONSE_TIME_FALL (RESPONSE_TIME_ONE / 8)
#define RESPONSE_TIME_RISE (RESPONSE_TIME_ONE / 4)

/* Longest time that counts: products with 2^16ths fit into 64 bits. */
#define RESPONSE_TIME_MAX_NS (INT64_C(1) << 42) /* 73 minutes */

/* Added to both sides of a comparison: differences below this are noise. */
#define RESPONSE_TIME_NOISE_NS (UINT64_C(1) << 14) /* 16 us */

/*
 * Longest wait that counts while it goes on. Then the client may be the reason, and the next
 * session tries the endpoint.
 */
#define RESPONSE_TIME_WAIT_NS RESPONSE_TIME_HALF_NS

static int64_t response_time_get(const _Atomic int64_t *member)
{
    return atomic_load_explicit(member, memory_order_relaxed);
}

/* ${ns} after ${age_ns}: halved each RESPONSE_TIME_HALF_NS, and linear between. */
static uint64_t response_time_fade(uint64_t ns, int64_t age_ns)
{
    uint64_t halves, part;

    if (age_ns <= 0)
        return ns;
    halves = (uint64_t)age_ns >> RESPONSE_TIME_HALF_BITS;
    part = ((uint64_t)age_ns & (RESPONSE_TIME_HALF_NS - 1)) >> (RESPONSE_TIME_HALF_BITS - 16);
    if (halves >= 64)
        return 0;
    ns >>= halves;
    return ns - (ns * part >> 17);
}

static uint64_t response_time_clip(int64_t ns)
{
    if (ns <= 0)
        return 0;
    return (uint64_t)(ns < RESPONSE_TIME_MAX_NS ? ns : RESPONSE_TIME_MAX_NS);
}

static void response_time_measured(struct response_time_wait *w, uint64_t ns, int64_t now_ns)
{
    uint64_t average = response_time_average_ns(w);
    int64_t at_ns = response_time_get(&w->measured_at_ns);
    uint64_t weight = RESPONSE_TIME_ONE - response_time_fade(RESPONSE_TIME_ONE, now_ns - at_ns);
    uint64_t least = ns > average ? RESPONSE_TIME_RISE : RESPONSE_TIME_FALL;

    if (weight < least)
        weight = least;
    if (at_ns == 0)
        average = ns;
    else if (ns > average)
        average += (ns - average) * weight >> 16;
    else
        average -= (average - ns) * weight >> 16;
    atomic_store_explicit(&w->average_ns, average, memory_order_relaxed);
    atomic_store_explicit(&w->measured_at_ns, now_ns, memory_order_relaxed);
}

/* How long the endpoint has let wait; 0: not at all, or for too long. */
static uint64_t response_time_waits_ns(const struct response_time_wait *w, int64_t now_ns)
{
    int64_t since_ns = response_time_get(&w->since_ns), ns = now_ns - since_ns;

    return since_ns == 0 || ns > RESPONSE_TIME_WAIT_NS ? 0 : response_time_clip(ns);
}

void response_time_began(struct response_time_wait *w, int64_t now_ns)
{
    if (response_time_waits_ns(w, now_ns) == 0)
        atomic_store_explicit(&w->since_ns, now_ns, memory_order_relaxed);
}

void response_time_ended(struct response_time_wait *w, int64_t took_ns, int64_t now_ns)
{
    response_time_measured(w, response_time_clip(took_ns), now_ns);
    if (response_time_get(&w->since_ns) != 0)
        atomic_store_explicit(&w->since_ns, 0, memory_order_relaxed);
}

void response_time_failed(struct response_time_wait *w, int64_t began_at_ns, int64_t now_ns)
{
    int64_t since_ns = response_time_get(&w->since_ns);
    uint64_t ns;

    if (since_ns == 0)
        return;
    ns = response_time_clip(now_ns - (since_ns > began_at_ns ? since_ns : began_at_ns));
    if (ns > response_time_average_ns(w))
        response_time_measured(w, ns, now_ns);
}

void response_time_restore(struct response_time_wait *w, uint64_t average_ns,
                           int64_t measured_at_ns)
{
    if (average_ns > RESPONSE_TIME_MAX_NS || measured_at_ns <= 0 || response_time_is_measured(w))
        return;
    atomic_store_explicit(&w->average_ns, average_ns, memory_order_relaxed);
    atomic_store_explicit(&w->measured_at_ns, measured_at_ns, memory_order_relaxed);
}

/* Add ${w} to ${out}. */
static void response_time_add(struct response_time_estimate *out,
                              const struct response_time_wait *w, int64_t now_ns)
{
    uint64_t average = response_time_average_ns(w), waits = response_time_waits_ns(w, now_ns);
    int64_t at_ns = response_time_get(&w->measured_at_ns);
    int64_t age_ns = at_ns == 0 ? CLOCK_NEVER : now_ns - at_ns;

    if (waits > average) {
        average = waits;
        age_ns = 0;
    }
    out->ns += average;
    if (age_ns < out->age_ns)
        out->age_ns = age_ns;
}

struct response_time_estimate response_time_estimate(const struct response_time *t, int64_t now_ns)
{
    struct response_time_estimate out = {.ns = 0, .age_ns = CLOCK_NEVER};

    response_time_add(&out, &t->connect, now_ns);
    response_time_add(&out, &t->first_byte, now_ns);
    return out;
}

void response_time_compare(struct response_time_estimate *a, struct response_time_estimate *b)
{
    struct response_time_estimate *more = a->ns > b->ns ? a : b, *less = more == a ? b : a;
    int64_t age_ns = a->age_ns > b->age_ns ? a->age_ns : b->age_ns;

    less->ns += RESPONSE_TIME_NOISE_NS;
    more->ns = less->ns + response_time_fade(more->ns + RESPONSE_TIME_NOISE_NS - less->ns, age_ns);
}
