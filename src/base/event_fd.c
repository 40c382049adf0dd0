#include "base/event_fd.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define EVENT_FD_ATTEMPTS 100

/* EAGAIN means a counter at its maximum: the descriptor is readable. */
static bool event_fd_is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1 && p.revents & POLLIN;
}

bool event_fd_signal(int fd)
{
    static struct log_limit limit;
    const uint64_t one = 1;
    unsigned suppressed;
    int error = 0;

    for (unsigned i = 0; i < EVENT_FD_ATTEMPTS; i++) {
        if (write(fd, &one, sizeof(one)) == sizeof(one))
            return true;
        error = errno;
        if (error == EAGAIN && event_fd_is_readable(fd))
            return true;
    }
    if (log_allowed(&limit, NS_PER_S, &suppressed))
        log_error("eventfd: cannot be written: %s; a thread may notice an event late%s",
                  strerror(error), LOG_SUPPRESSED(suppressed));
    return false;
}
