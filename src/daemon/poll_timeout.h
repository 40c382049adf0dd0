/*
 * daemon/poll_timeout: timeout of poll(2) for an instant.
 */
#ifndef DAEMON_POLL_TIMEOUT_H
#define DAEMON_POLL_TIMEOUT_H

#include <limits.h>
#include <stdint.h>

#include "base/clock.h"

/* poll_timeout_ms(at_ns): return the time until ${at_ns} in ms, rounded up: never early. */
static inline int poll_timeout_ms(int64_t at_ns)
{
    int64_t rest_ns;

    if (at_ns == CLOCK_NEVER)
        return -1;
    rest_ns = at_ns - clock_now_ns();
    if (rest_ns <= 0)
        return 0;
    return rest_ns <= INT_MAX * NS_PER_MS ? (int)((rest_ns + NS_PER_MS - 1) / NS_PER_MS) : INT_MAX;
}

#endif
