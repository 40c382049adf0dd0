/*
 * stress/stress: what every stress program does around its load.
 *
 * A program runs for seconds as it is; its one argument multiplies the load. On a busy machine it
 * does less, in a bounded time. It prints one line and exits with 0, or names what did not hold and
 * exits with 1.
 */
#ifndef STRESS_STRESS_H
#define STRESS_STRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/must.h"
#include "support/rounds.h"

#ifdef __has_feature /* clang */
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define STRESS_SANITIZED
#endif
#elif defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define STRESS_SANITIZED
#endif

#ifdef STRESS_SANITIZED
#define STRESS_SLOWER 10
#else
#define STRESS_SLOWER 1
#endif

/* SIGALRM ends one that hangs. */
#define STRESS_SECONDS 180

static int64_t stress_part_ns, stress_until_ns;

/* Exit unless ${cond} holds. */
#define STRESS_CHECK(cond)                                                            \
    do {                                                                              \
        if (!(cond)) {                                                                \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #cond); \
            exit(EXIT_FAILURE);                                                       \
        }                                                                             \
    } while (0)

/*
 * stress_begin():
 * Begin the next part of the program, which has as much time as the one before.
 *
 * Thread: main, while no other asks stress_goes_on
 */
static inline void stress_begin(void)
{
    stress_until_ns = clock_now_ns() + stress_part_ns;
}

/*
 * stress_goes_on(done, load):
 * Whether there is more to do: ${done} of ${load} are done, and there is time for more. For the
 * first there is always time.
 *
 * Thread: any
 */
static inline bool stress_goes_on(uint64_t done, uint64_t load)
{
    return rounds_go_on(done, load, stress_until_ns);
}

/*
 * stress_load(argc, argv, usual):
 * How much to do: ${usual}, a tenth of it under a sanitizer, times the argument if there is one.
 *
 * Thread: main
 * Errors: none (exits when the argument is not a number above 0)
 */
static inline uint64_t stress_load(int argc, char **argv, uint64_t usual)
{
    long factor = argc > 1 ? atol(argv[1]) : 1;

    STRESS_CHECK(factor > 0);
    alarm(STRESS_SECONDS * (unsigned)factor);
    stress_part_ns = ROUNDS_SECONDS * factor * NS_PER_S;
    stress_begin();
    return usual / STRESS_SLOWER * (uint64_t)factor;
}

#endif
