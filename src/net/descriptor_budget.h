/*
 * net/descriptor_budget: counts and limits the descriptors of connections.
 */
#ifndef NET_DESCRIPTOR_BUDGET_H
#define NET_DESCRIPTOR_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>

/*
 * Descriptors in use, and their limit.
 *
 * note: lent. Spare connections and pipes borrow descriptors. The budget lends them while twice the
 * reserve stays free, and wants them back when less than the reserve is free.
 */
struct descriptor_budget {
    atomic_uint used; /* `used`, `lent`: relaxed, plain counters */
    atomic_uint lent; /* part of `used`; see note: lent */
    unsigned max;     /* `max` and `reserve` are set before start */
    unsigned reserve;
};

/*
 * descriptor_budget_left(d, n):
 * Are ${n} descriptors free? A hint: other threads may reserve them meanwhile.
 */
static inline bool descriptor_budget_left(const struct descriptor_budget *d, unsigned n)
{
    return atomic_load_explicit(&d->used, memory_order_relaxed) + n <= d->max;
}

/*
 * descriptor_budget_count(d, n) / descriptor_budget_release(d, n):
 * Reserve ${n} descriptors without a check / release ${n}.
 */
static inline void descriptor_budget_count(struct descriptor_budget *d, unsigned n)
{
    atomic_fetch_add_explicit(&d->used, n, memory_order_relaxed);
}

static inline void descriptor_budget_release(struct descriptor_budget *d, unsigned n)
{
    atomic_fetch_sub_explicit(&d->used, n, memory_order_relaxed);
}

/* descriptor_budget_take(d): reserve one descriptor; false at the limit. */
static inline bool descriptor_budget_take(struct descriptor_budget *d)
{
    if (atomic_fetch_add_explicit(&d->used, 1, memory_order_relaxed) < d->max)
        return true;
    descriptor_budget_release(d, 1);
    return false;
}

/*
 * descriptor_budget_limit() / descriptor_budget_open():
 * Return RLIMIT_NOFILE / the number of open descriptors.
 */
unsigned descriptor_budget_limit(void);
unsigned descriptor_budget_open(void);

/*
 * descriptor_budget_lend(d, n) / descriptor_budget_return(d, n):
 * Lend ${n} descriptors, false if too few are free / take ${n} back (note: lent).
 */
static inline bool descriptor_budget_lend(struct descriptor_budget *d, unsigned n)
{
    if (!descriptor_budget_left(d, 2 * d->reserve + n))
        return false;
    descriptor_budget_count(d, n);
    atomic_fetch_add_explicit(&d->lent, n, memory_order_relaxed);
    return true;
}

static inline void descriptor_budget_return(struct descriptor_budget *d, unsigned n)
{
    atomic_fetch_sub_explicit(&d->lent, n, memory_order_relaxed);
    descriptor_budget_release(d, n);
}

/*
 * descriptor_budget_are_lent(d) / descriptor_budget_wanted_back(d):
 * Are descriptors lent? / should lent descriptors be returned now?
 */
static inline bool descriptor_budget_are_lent(const struct descriptor_budget *d)
{
    return atomic_load_explicit(&d->lent, memory_order_relaxed) > 0;
}

static inline bool descriptor_budget_wanted_back(const struct descriptor_budget *d)
{
    return descriptor_budget_are_lent(d) && !descriptor_budget_left(d, d->reserve);
}

#endif
