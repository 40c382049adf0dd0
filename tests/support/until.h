/*
 * support/until: waiting for what another thread brings about.
 */
#ifndef SUPPORT_UNTIL_H
#define SUPPORT_UNTIL_H

#include <check.h>
#include <unistd.h>

#include "base/clock.h"

/*
 * Far more than anything here takes, so that a slow machine does not fail a test and a hang still
 * does.
 */
#define UNTIL_LIMIT_NS (20 * NS_PER_S)

/* Look again and again until ${cond} holds. */
#define UNTIL(cond)                                                  \
    do {                                                             \
        int64_t until_limit_at_ns = clock_now_ns() + UNTIL_LIMIT_NS; \
        while (!(cond)) {                                            \
            if (clock_now_ns() >= until_limit_at_ns)                 \
                ck_abort_msg("did not come about: %s", #cond);       \
            usleep(500);                                             \
        }                                                            \
    } while (0)

/* Give what should not happen the time to happen. */
#define PAUSE_MS(ms) usleep((ms)*1000)

/* How long the caller has been at it. */
static inline int64_t since_ms(int64_t at_ns)
{
    return (clock_now_ns() - at_ns) / NS_PER_MS;
}

#endif
