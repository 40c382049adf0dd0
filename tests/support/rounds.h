/*
 * support/rounds: what is done again and again because each time is another chance: as often as a
 * quiet machine does it in a moment, and on a busy one no longer than a test may take.
 */
#ifndef SUPPORT_ROUNDS_H
#define SUPPORT_ROUNDS_H

#include <stdbool.h>

#include "base/clock.h"

#define ROUNDS_SECONDS 10

/* The statement behind it for each ${round} below ${n} for which there is time: 0 at least. */
#define EACH_ROUND(round, n)                                                             \
    for (int64_t round = 0, round##_end_ns = clock_now_ns() + ROUNDS_SECONDS * NS_PER_S; \
         round == 0 || (round < (int64_t)(n) && clock_now_ns() < round##_end_ns); round++)

#endif
