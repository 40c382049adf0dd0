/*
 * preload/backend_fault: an epoll instance that misbehaves, in each way that src/engine/backend.h
 * speaks of.
 */
#include <sys/epoll.h>

#include "plan.h"

/* As in support/preload.py. */
enum fault {
    WAIT_FAILS,    /* epoll_wait() fails with `value` */
    WAIT_EMPTY,    /* epoll_wait() returns at once with nothing */
    INSTANCE_GONE, /* from this epoll_wait() on the descriptor is none of epoll's */
    ADD_FAILS,     /* epoll_ctl() fails with `value` to add a descriptor */
    CREATE_FAILS   /* epoll_create1() fails with `value` */
};

static int fail(const struct plan_fault *f)
{
    errno = f->value;
    return -1;
}

/* In its place, so that nobody else can get the number before the loop closes it. */
static void replace(int fd)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null < 0 || dup3(null, fd, O_CLOEXEC) < 0)
        abort();
    close(null);
}

int epoll_wait(int fd, struct epoll_event *events, int max, int timeout_ms)
{
    const struct plan_fault *f = plan_strikes(WAIT_FAILS);

    if (f)
        return fail(f);
    if (plan_strikes(WAIT_EMPTY))
        return 0;
    if (plan_strikes(INSTANCE_GONE))
        replace(fd);
    return PLAN_NEXT(epoll_wait)(fd, events, max, timeout_ms);
}

int epoll_ctl(int epoll_fd, int operation, int fd, struct epoll_event *event)
{
    const struct plan_fault *f = operation == EPOLL_CTL_ADD ? plan_strikes(ADD_FAILS) : NULL;

    return f ? fail(f) : PLAN_NEXT(epoll_ctl)(epoll_fd, operation, fd, event);
}

int epoll_create1(int flags)
{
    const struct plan_fault *f = plan_strikes(CREATE_FAILS);

    return f ? fail(f) : PLAN_NEXT(epoll_create1)(flags);
}
