/*
 * support/rounds: what is done again and again because each time is another chance: as often as a
 * quiet machine does it in a moment, and on a busy one no longer than a test may take.
 */
#ifndef SUPPORT_ROUNDS_H
#define SUPPORT_ROUNDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define ROUNDS_SECONDS 10

/*
 * rounds_go_on(done, n, end_ns):
 * Whether there is another round: ${done} of ${n} are done, and it is not yet ${end_ns}. For the
 * first there is always time.
 *
 * Thread: any
 */
static inline bool rounds_go_on(uint64_t done, uint64_t n, int64_t end_ns)
{
    return done == 0 || (done < n && clock_now_ns() < end_ns);
}

/* The statement behind it for each ${round} below ${n} for which there is time. */
#define EACH_ROUND(round, n)                                                             \
    for (int64_t round = 0, round##_end_ns = clock_now_ns() + ROUNDS_SECONDS * NS_PER_S; \
         rounds_go_on((uint64_t)round, (n), round##_end_ns); round++)

#endif
