/* preload/call_fault: system calls of the main thread that fail with `value`. */
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "plan.h"

/* As in test_call_faults.py. */
enum fault {
    EPOLL_CREATE,
    EPOLL_CTL,
    EVENTFD,
    SIGNALFD,
    TIMERFD,
    MEMFD,
    SOCKETPAIR,
    PIPE,
    FORK,
    POLL,
    SETNS
};

static int fails(enum fault fault)
{
    const struct plan_fault *f = plan_strikes(fault);

    if (f)
        errno = f->value;
    return f != NULL;
}

int epoll_create1(int flags)
{
    return fails(EPOLL_CREATE) ? -1 : PLAN_NEXT(epoll_create1)(flags);
}

int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
    return fails(EPOLL_CTL) ? -1 : PLAN_NEXT(epoll_ctl)(epfd, op, fd, event);
}

int eventfd(unsigned count, int flags)
{
    return fails(EVENTFD) ? -1 : PLAN_NEXT(eventfd)(count, flags);
}

int signalfd(int fd, const sigset_t *mask, int flags)
{
    return fails(SIGNALFD) ? -1 : PLAN_NEXT(signalfd)(fd, mask, flags);
}

int timerfd_create(clockid_t clock, int flags)
{
    return fails(TIMERFD) ? -1 : PLAN_NEXT(timerfd_create)(clock, flags);
}

int memfd_create(const char *name, unsigned flags)
{
    return fails(MEMFD) ? -1 : PLAN_NEXT(memfd_create)(name, flags);
}

int socketpair(int domain, int type, int protocol, int ends[2])
{
    return fails(SOCKETPAIR) ? -1 : PLAN_NEXT(socketpair)(domain, type, protocol, ends);
}

int pipe2(int ends[2], int flags)
{
    return fails(PIPE) ? -1 : PLAN_NEXT(pipe2)(ends, flags);
}

int setns(int fd, int kind)
{
    return fails(SETNS) ? -1 : PLAN_NEXT(setns)(fd, kind);
}

pid_t fork(void)
{
    return fails(FORK) ? -1 : PLAN_NEXT(fork)();
}

int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    return fails(POLL) ? -1 : PLAN_NEXT(poll)(fds, n, timeout_ms);
}
