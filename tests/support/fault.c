/* support/fault: see fault.h. */
#include "support/fault.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>

struct fault {
    atomic_uint calls;
    atomic_uint skip;
    atomic_uint times;
    atomic_int error;
};

static struct fault faults[FAULT_SPLICE + 1];

void fault_plan(enum fault_call call, unsigned skip, unsigned times, int error)
{
    struct fault *f = &faults[call];

    atomic_store(&f->times, 0);
    atomic_store(&f->skip, skip);
    atomic_store(&f->error, error);
    atomic_store(&f->times, times);
}

unsigned fault_calls(enum fault_call call)
{
    return atomic_load(&faults[call].calls);
}

/* Count ${left} down by one unless it is 0 or has no end. */
static bool take(atomic_uint *left)
{
    unsigned n = atomic_load(left);

    while (n > 0)
        if (atomic_compare_exchange_weak(left, &n, n == FAULT_ALWAYS ? n : n - 1))
            return true;
    return false;
}

/* The planned errno, or 0 when the call is to be passed on. */
static int strike(enum fault_call call)
{
    struct fault *f = &faults[call];

    atomic_fetch_add(&f->calls, 1);
    if (atomic_load(&f->times) == 0 || take(&f->skip) || !take(&f->times))
        return 0;
    return atomic_load(&f->error);
}

int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attr,
                   void *(*start)(void *), void *restrict arg)
{
    int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
        dlsym(RTLD_NEXT, "pthread_create");
    int error = strike(FAULT_PTHREAD_CREATE);

    return error ? error : next(thread, attr, start, arg);
}

int accept4(int fd, __SOCKADDR_ARG addr, socklen_t *restrict len, int flags)
{
    int (*next)(int, __SOCKADDR_ARG, socklen_t *, int) = dlsym(RTLD_NEXT, "accept4");
    int error = strike(FAULT_ACCEPT4);

    if (!error)
        return next(fd, addr, len, flags);
    errno = error;
    return -1;
}

ssize_t send(int fd, const void *data, size_t len, int flags)
{
    ssize_t (*next)(int, const void *, size_t, int) = dlsym(RTLD_NEXT, "send");
    int error = strike(FAULT_SEND);

    if (!error)
        return next(fd, data, len, flags);
    errno = error;
    return -1;
}

ssize_t splice(int from, off64_t *from_at, int to, off64_t *to_at, size_t len, unsigned flags)
{
    ssize_t (*next)(int, off64_t *, int, off64_t *, size_t, unsigned) = dlsym(RTLD_NEXT, "splice");
    int error = strike(FAULT_SPLICE);

    if (!error)
        return next(from, from_at, to, to_at, len, flags);
    errno = error;
    return -1;
}
