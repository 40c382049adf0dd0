/*
 * base/clock: instants and durations in nanoseconds.
 *
 * Instants (CLOCK_MONOTONIC) are named `..._at_ns`, durations `..._ns`. CLOCK_NEVER is an instant
 * that never comes, or an infinite duration.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define CLOCK_NEVER INT64_MAX
#define NS_PER_US   INT64_C(1000)
#define NS_PER_MS   INT64_C(1000000)
#define NS_PER_S    INT64_C(1000000000)
#define NS_PER_DAY  (86400 * NS_PER_S)

/* clock_now_ns(): read the monotonic clock; about 20 ns (vDSO). */
static inline int64_t clock_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

/* clock_thread_ns(): return the CPU time of the calling thread; a system call. */
static inline int64_t clock_thread_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

/*
 * clock_add_ns(at_ns, delay_ns):
 * Return ${at_ns} + ${delay_ns}; a negative delay counts as 0, an overflow gives CLOCK_NEVER.
 */
static inline int64_t clock_add_ns(int64_t at_ns, int64_t delay_ns)
{
    int64_t sum;

    if (delay_ns < 0)
        return at_ns;
    return __builtin_add_overflow(at_ns, delay_ns, &sum) ? CLOCK_NEVER : sum;
}

/*
 * clock_sooner(a_at_ns, b_at_ns) / clock_later(a_at_ns, b_at_ns):
 * Return the earlier / later instant.
 */
static inline int64_t clock_sooner(int64_t a_at_ns, int64_t b_at_ns)
{
    return a_at_ns < b_at_ns ? a_at_ns : b_at_ns;
}

static inline int64_t clock_later(int64_t a_at_ns, int64_t b_at_ns)
{
    return a_at_ns > b_at_ns ? a_at_ns : b_at_ns;
}

#endif
