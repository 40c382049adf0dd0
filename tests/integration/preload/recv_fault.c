/* preload/recv_fault: a connection that breaks in a way of its own: recv() fails with `value`. */
#include <sys/socket.h>

#include "plan.h"

/* As in test_reasons.py. */
enum fault { RECV_FAILS };

ssize_t recv(int fd, void *data, size_t len, int flags)
{
    const struct plan_fault *f = plan_strikes(RECV_FAILS);

    if (!f)
        return PLAN_NEXT(recv)(fd, data, len, flags);
    errno = f->value;
    return -1;
}
