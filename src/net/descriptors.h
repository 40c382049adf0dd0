/*
 * net/descriptors: how many descriptors connections have, and may have, all together: counted before they are opened, so
 * that nobody who was let in finds none left.
 */
#ifndef NET_DESCRIPTORS_H
#define NET_DESCRIPTORS_H

#include <stdatomic.h>
#include <stdbool.h>

struct descriptors {
    atomic_uint used; /* relaxed: a number on its own */
    unsigned max;     /* set before start */
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

#endif
