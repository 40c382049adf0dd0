/*
 * net/descriptors: how many descriptors connections have, and may have, all together: counted before they are opened, so
 * that nobody who was let in finds none left.
 */
#ifndef NET_DESCRIPTORS_H
#define NET_DESCRIPTORS_H

#include <stdatomic.h>
#include <stdbool.h>

/*
 * note: lent. Some of the used descriptors are only lent: to spare connections and to pipes. They are
 * lent while twice the reserve would still be left, and asked back when less than the reserve is left:
 * clients find some while the lent ones are being closed, and none are lent and asked back all the time.
 */
struct descriptors {
    atomic_uint used; /* relaxed, as the next: a number on its own */
    atomic_uint lent; /* of these; see note: lent */
    unsigned max;     /* set before start, as the next */
    unsigned reserve;
};

/*
 * descriptors_left(d, n):
 * Are there ${n} more? A hint for one who counts them with descriptors_count() soon after.
 *
 * Thread: any
 * Errors: none
 */
static inline bool descriptors_left(const struct descriptors *d, unsigned n)
{
    return atomic_load_explicit(&d->used, memory_order_relaxed) + n <= d->max;
}

/*
 * descriptors_count(d, n) / descriptors_release(d, n):
 * ${n} more are had, or no longer.
 *
 * Thread: any
 * Errors: none
 */
static inline void descriptors_count(struct descriptors *d, unsigned n)
{
    atomic_fetch_add_explicit(&d->used, n, memory_order_relaxed);
}

static inline void descriptors_release(struct descriptors *d, unsigned n)
{
    atomic_fetch_sub_explicit(&d->used, n, memory_order_relaxed);
}

/*
 * descriptors_take(d):
 * Have one more, unless there is none.
 *
 * Thread: any
 * Errors: none
 */
static inline bool descriptors_take(struct descriptors *d)
{
    if (atomic_fetch_add_explicit(&d->used, 1, memory_order_relaxed) < d->max)
        return true;
    descriptors_release(d, 1);
    return false;
}

/*
 * descriptors_limit() / descriptors_open():
 * How many the process may have (RLIMIT_NOFILE), and has now.
 *
 * Thread: any
 * Errors: none
 */
unsigned descriptors_limit(void);
unsigned descriptors_open(void);

/*
 * descriptors_lend(d, n) / descriptors_return(d, n):
 * Lend ${n}, false when too few are left; give them back. See note: lent.
 *
 * Thread: any
 * Errors: none
 */
static inline bool descriptors_lend(struct descriptors *d, unsigned n)
{
    if (!descriptors_left(d, 2 * d->reserve + n))
        return false;
    descriptors_count(d, n);
    atomic_fetch_add_explicit(&d->lent, n, memory_order_relaxed);
    return true;
}

static inline void descriptors_return(struct descriptors *d, unsigned n)
{
    atomic_fetch_sub_explicit(&d->lent, n, memory_order_relaxed);
    descriptors_release(d, n);
}

/*
 * descriptors_are_lent(d) / descriptors_wanted_back(d):
 * Are some lent? Are some lent while less than the reserve is left?
 *
 * Thread: any
 * Errors: none
 */
static inline bool descriptors_are_lent(const struct descriptors *d)
{
    return atomic_load_explicit(&d->lent, memory_order_relaxed) > 0;
}

static inline bool descriptors_wanted_back(const struct descriptors *d)
{
    return descriptors_are_lent(d) && !descriptors_left(d, d->reserve);
}

#endif
