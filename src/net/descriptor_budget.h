/*
 * net/descriptor_budget: how many descriptors connections have, and may have, all together: counted
 * before they are opened, so that nobody who was let in finds none left.
 */
#ifndef NET_DESCRIPTOR_BUDGET_H
#define NET_DESCRIPTOR_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>

/*
 * note: lent. Some of the used descriptors are only lent: to spare connections and to pipes. They
 * are lent while twice the reserve would still be left, and asked back when less than the reserve
 * is left: clients find some while the lent ones are being closed, and none are lent and asked back
 * all the time.
 */
struct descriptor_budget {
    atomic_uint used; /* relaxed, as the next: a number on its own */
    atomic_uint lent; /* of these; see note: lent */
    unsigned max;     /* set before start, as the next */
    unsigned reserve;
};

/*
 * descriptor_budget_left(d, n):
 * Are there ${n} more? A hint for one who counts them with descriptor_budget_count() soon after.
 *
 * Thread: any
 */
static inline bool descriptor_budget_left(const struct descriptor_budget *d, unsigned n)
{
    return atomic_load_explicit(&d->used, memory_order_relaxed) + n <= d->max;
}

/*
 * descriptor_budget_count(d, n) / descriptor_budget_release(d, n):
 * ${n} more are had, or no longer.
 *
 * Thread: any
 */
static inline void descriptor_budget_count(struct descriptor_budget *d, unsigned n)
{
    atomic_fetch_add_explicit(&d->used, n, memory_order_relaxed);
}

static inline void descriptor_budget_release(struct descriptor_budget *d, unsigned n)
{
    atomic_fetch_sub_explicit(&d->used, n, memory_order_relaxed);
}

/*
 * descriptor_budget_take(d):
 * Have one more, unless there is none.
 *
 * Thread: any
 */
static inline bool descriptor_budget_take(struct descriptor_budget *d)
{
    if (atomic_fetch_add_explicit(&d->used, 1, memory_order_relaxed) < d->max)
        return true;
    descriptor_budget_release(d, 1);
    return false;
}

/*
 * descriptor_budget_limit() / descriptor_budget_open():
 * How many the process may have (RLIMIT_NOFILE), and has now.
 *
 * Thread: any
 */
unsigned descriptor_budget_limit(void);
unsigned descriptor_budget_open(void);

/*
 * descriptor_budget_lend(d, n) / descriptor_budget_return(d, n):
 * Lend ${n}, false when too few are left; give them back. See note: lent.
 *
 * Thread: any
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
 * Are some lent? Are some lent while less than the reserve is left?
 *
 * Thread: any
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
