/*
 * preload/any_fault: any call of the C library that the daemon makes, itself or in libev, OpenSSL
 * and libmicrohttpd, fails with `value`: the next ones, or some of each thousand.
 */
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>

#include "plan.h"

/* The order is that of support/fault_plan.py, which reads this list. */
enum fault {
    FAULT_socket,
    FAULT_accept4,
    FAULT_connect,
    FAULT_bind,
    FAULT_listen,
    FAULT_shutdown,
    FAULT_setsockopt,
    FAULT_getsockopt,
    FAULT_getsockname,
    FAULT_ioctl,
    FAULT_fcntl,
    FAULT_recv,
    FAULT_send,
    FAULT_recvmsg,
    FAULT_sendmsg,
    FAULT_read,
    FAULT_write,
    FAULT_eventfd_read,
    FAULT_pread,
    FAULT_readv,
    FAULT_writev,
    FAULT_splice,
    FAULT_open,
    FAULT_openat,
    FAULT_fopen,
    FAULT_mmap,
    FAULT_pipe2,
    FAULT_socketpair,
    FAULT_eventfd,
    FAULT_epoll_create1,
    FAULT_epoll_ctl,
    FAULT_epoll_wait,
    FAULT_poll,
    FAULT_ppoll,
    FAULT_signalfd,
    FAULT_timerfd_create,
    FAULT_timerfd_settime,
    FAULT_inotify_init1,
    FAULT_inotify_add_watch,
    FAULT_memfd_create,
    FAULT_fork,
    FAULT_pthread_create,
    FAULT_malloc,
    FAULT_calloc,
    FAULT_realloc,
    FAULT_posix_memalign,
    FAULTS
};

/* dlsym() allocates itself: these are glibc's own names for the same functions. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static int error_of(enum fault fault)
{
    const struct plan_fault *f = plan_strikes(fault);

    return f ? f->value : 0;
}

static bool fails(enum fault fault)
{
    int error = error_of(fault);

    if (error != 0)
        errno = error;
    return error != 0;
}

/* A call that returns -1 and sets errno. */
#define FAILS(type, name, parameters, arguments) \
    type name parameters                         \
    {                                            \
        static __typeof__(&name) next;           \
                                                 \
        if (fails(FAULT_##name))                 \
            return -1;                           \
        if (!next)                               \
            next = PLAN_NEXT(name);              \
        return next arguments;                   \
    }

FAILS(int, socket, (int family, int type, int protocol), (family, type, protocol))
FAILS(int, accept4, (int fd, struct sockaddr *peer, socklen_t *len, int flags),
      (fd, peer, len, flags))
FAILS(int, connect, (int fd, const struct sockaddr *to, socklen_t len), (fd, to, len))
FAILS(int, bind, (int fd, const struct sockaddr *to, socklen_t len), (fd, to, len))
FAILS(int, listen, (int fd, int backlog), (fd, backlog))
FAILS(int, shutdown, (int fd, int how), (fd, how))
FAILS(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t len),
      (fd, level, name, value, len))
FAILS(int, getsockopt, (int fd, int level, int name, void *restrict value, socklen_t *restrict len),
      (fd, level, name, value, len))
FAILS(int, getsockname, (int fd, struct sockaddr *restrict out, socklen_t *restrict len),
      (fd, out, len))
FAILS(ssize_t, recv, (int fd, void *data, size_t len, int flags), (fd, data, len, flags))
FAILS(ssize_t, send, (int fd, const void *data, size_t len, int flags), (fd, data, len, flags))
FAILS(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags))
FAILS(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags))
FAILS(ssize_t, read, (int fd, void *data, size_t len), (fd, data, len))
FAILS(ssize_t, write, (int fd, const void *data, size_t len), (fd, data, len))
FAILS(int, eventfd_read, (int fd, eventfd_t *value), (fd, value))
FAILS(ssize_t, pread, (int fd, void *data, size_t len, off_t at), (fd, data, len, at))
FAILS(ssize_t, readv, (int fd, const struct iovec *parts, int n), (fd, parts, n))
FAILS(ssize_t, writev, (int fd, const struct iovec *parts, int n), (fd, parts, n))
FAILS(ssize_t, splice, (int in, off64_t *at, int out, off64_t *to, size_t len, unsigned flags),
      (in, at, out, to, len, flags))
FAILS(int, pipe2, (int ends[2], int flags), (ends, flags))
FAILS(int, socketpair, (int domain, int type, int protocol, int ends[2]),
      (domain, type, protocol, ends))
FAILS(int, eventfd, (unsigned count, int flags), (count, flags))
FAILS(int, epoll_create1, (int flags), (flags))
FAILS(int, epoll_wait, (int epfd, struct epoll_event *events, int n, int ms), (epfd, events, n, ms))
FAILS(int, poll, (struct pollfd * fds, nfds_t n, int ms), (fds, n, ms))
FAILS(int, ppoll,
      (struct pollfd * fds, nfds_t n, const struct timespec *most, const sigset_t *mask),
      (fds, n, most, mask))
FAILS(int, signalfd, (int fd, const sigset_t *mask, int flags), (fd, mask, flags))
FAILS(int, timerfd_create, (clockid_t clock, int flags), (clock, flags))
FAILS(int, timerfd_settime,
      (int fd, int flags, const struct itimerspec *to, struct itimerspec *old),
      (fd, flags, to, old))
FAILS(int, inotify_init1, (int flags), (flags))
FAILS(int, inotify_add_watch, (int fd, const char *path, uint32_t mask), (fd, path, mask))
FAILS(int, memfd_create, (const char *name, unsigned flags), (name, flags))
FAILS(pid_t, fork, (void), ())

/* To remove takes no memory, and does not fail. */
int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
    if (op != EPOLL_CTL_DEL && fails(FAULT_epoll_ctl))
        return -1;
    return PLAN_NEXT(epoll_ctl)(epfd, op, fd, event);
}

/* A call with one argument more that may be left out, and is read then, too. */
#define FAILS_MORE(name, parameters, arguments, last) \
    int name parameters                               \
    {                                                 \
        static __typeof__(&name) next;                \
        va_list list;                                 \
        void *more;                                   \
                                                      \
        if (fails(FAULT_##name))                      \
            return -1;                                \
        va_start(list, last);                         \
        more = va_arg(list, void *);                  \
        va_end(list);                                 \
        if (!next)                                    \
            next = PLAN_NEXT(name);                   \
        return next arguments;                        \
    }

FAILS_MORE(ioctl, (int fd, unsigned long request, ...), (fd, request, more), request)
/* Only a copy takes a descriptor. */
int fcntl(int fd, int command, ...)
{
    va_list list;
    void *more;

    if ((command == F_DUPFD || command == F_DUPFD_CLOEXEC) && fails(FAULT_fcntl))
        return -1;
    va_start(list, command);
    more = va_arg(list, void *);
    va_end(list);
    return PLAN_NEXT(fcntl)(fd, command, more);
}

FAILS_MORE(open, (const char *path, int flags, ...), (path, flags, (mode_t)(uintptr_t)more), flags)
FAILS_MORE(openat, (int dir, const char *path, int flags, ...),
           (dir, path, flags, (mode_t)(uintptr_t)more), flags)

FILE *fopen(const char *restrict path, const char *restrict how)
{
    return fails(FAULT_fopen) ? NULL : PLAN_NEXT(fopen)(path, how);
}

void *mmap(void *at, size_t len, int protection, int flags, int fd, off_t offset)
{
    return fails(FAULT_mmap) ? MAP_FAILED : PLAN_NEXT(mmap)(at, len, protection, flags, fd, offset);
}

int pthread_create(pthread_t *restrict out, const pthread_attr_t *restrict attributes,
                   void *(*run)(void *), void *restrict argument)
{
    int error = error_of(FAULT_pthread_create);

    return error != 0 ? error : PLAN_NEXT(pthread_create)(out, attributes, run, argument);
}

void *malloc(size_t size)
{
    return fails(FAULT_malloc) ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return fails(FAULT_calloc) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
    return fails(FAULT_realloc) ? NULL : __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return fails(FAULT_posix_memalign) ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    void *memory = fails(FAULT_posix_memalign) ? NULL : __libc_memalign(alignment, size);

    if (memory)
        *out = memory;
    return memory ? 0 : ENOMEM;
}
