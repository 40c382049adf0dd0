/* preload/hang: a call that is never to block, and does: for so long, or until it is released. */
#include <sys/socket.h>
#include <time.h>

#include "plan.h"

/* As in support/preload.py. `value`: for how many milliseconds; 0: until it is something else. */
enum fault { SEND_HANGS, RECV_HANGS };

static void hang(const struct plan_fault *f)
{
    struct timespec rest = {.tv_sec = f->value / 1000, .tv_nsec = f->value % 1000 * 1000000L};

    while (*(const volatile int *)&f->value == 0)
        usleep(1000);
    while (nanosleep(&rest, &rest) < 0)
        ;
}

ssize_t send(int fd, const void *data, size_t len, int flags)
{
    const struct plan_fault *f = plan_strikes(SEND_HANGS);

    if (f)
        hang(f);
    return PLAN_NEXT(send)(fd, data, len, flags);
}

ssize_t recv(int fd, void *data, size_t len, int flags)
{
    const struct plan_fault *f = plan_strikes(RECV_HANGS);

    if (f)
        hang(f);
    return PLAN_NEXT(recv)(fd, data, len, flags);
}
