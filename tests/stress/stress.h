/*
 * stress/stress: what every stress program does around its load.
 *
 * A program runs for seconds as it is; its one argument multiplies the load. It prints one line and
 * exits with 0, or names what did not hold and exits with 1.
 */
#ifndef STRESS_STRESS_H
#define STRESS_STRESS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/must.h"

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

/* Longer than any of them may take: SIGALRM ends one that hangs. */
#define STRESS_SECONDS 120

/* Exit unless ${cond} holds. */
#define STRESS_CHECK(cond)                                                            \
    do {                                                                              \
        if (!(cond)) {                                                                \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #cond); \
            exit(EXIT_FAILURE);                                                       \
        }                                                                             \
    } while (0)

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
    return usual / STRESS_SLOWER * (uint64_t)factor;
}

#endif
