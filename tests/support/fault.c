/* support/fault: see fault.h. */
#include "support/fault.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <check.h>

struct fault {
    atomic_uint calls;
    atomic_uint struck;
    atomic_uint skip;
    atomic_uint times;
    atomic_int error;
};

static struct fault faults[FAULT_MEMORY + 1];

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

unsigned fault_struck(enum fault_call call)
{
    return atomic_load(&faults[call].struck);
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

/* Is the call to fail, and with what? */
static bool strike(enum fault_call call, int *error)
{
    struct fault *f = &faults[call];

    atomic_fetch_add(&f->calls, 1);
    if (atomic_load(&f->times) == 0 || take(&f->skip) || !take(&f->times))
        return false;
    *error = atomic_load(&f->error);
    atomic_fetch_add(&f->struck, 1);
    return true;
}

/* As a system call returns it. */
static int outcome(int error)
{
    if (error == 0)
        return 0;
    errno = error;
    return -1;
}

int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attr,
                   void *(*start)(void *), void *restrict arg)
{
    int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
        dlsym(RTLD_NEXT, "pthread_create");
    int error;

    return strike(FAULT_PTHREAD_CREATE, &error) ? error : next(thread, attr, start, arg);
}

int accept4(int fd, __SOCKADDR_ARG addr, socklen_t *restrict len, int flags)
{
    int (*next)(int, __SOCKADDR_ARG, socklen_t *, int) = dlsym(RTLD_NEXT, "accept4");
    int error;

    return strike(FAULT_ACCEPT4, &error) ? outcome(error) : next(fd, addr, len, flags);
}

ssize_t recv(int fd, void *data, size_t len, int flags)
{
    ssize_t (*next)(int, void *, size_t, int) = dlsym(RTLD_NEXT, "recv");
    int error;

    return strike(FAULT_RECV, &error) ? outcome(error) : next(fd, data, len, flags);
}

ssize_t send(int fd, const void *data, size_t len, int flags)
{
    ssize_t (*next)(int, const void *, size_t, int) = dlsym(RTLD_NEXT, "send");
    int error;

    return strike(FAULT_SEND, &error) ? outcome(error) : next(fd, data, len, flags);
}

ssize_t splice(int from, off64_t *from_at, int to, off64_t *to_at, size_t len, unsigned flags)
{
    ssize_t (*next)(int, off64_t *, int, off64_t *, size_t, unsigned) = dlsym(RTLD_NEXT, "splice");
    int error;

    if (!strike(FAULT_SPLICE, &error))
        return next(from, from_at, to, to_at, len, flags);
    if (error != FAULT_RESET_MISSED)
        return outcome(error);
    atomic_store(&faults[FAULT_SPLICE].error, EPIPE);
    return next(from, from_at, to, to_at, 1, flags);
}

int epoll_create1(int flags)
{
    int (*next)(int) = dlsym(RTLD_NEXT, "epoll_create1");
    int error;

    return strike(FAULT_EPOLL_CREATE1, &error) ? outcome(error) : next(flags);
}

int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
    int (*next)(int, int, int, struct epoll_event *) = dlsym(RTLD_NEXT, "epoll_ctl");
    int error;

    return strike(FAULT_EPOLL_CTL, &error) ? outcome(error) : next(epfd, op, fd, event);
}

int epoll_wait(int epfd, struct epoll_event *events, int n, int timeout_ms)
{
    static int (*_Atomic found)(int, struct epoll_event *, int,
                                int); /* looking it up takes longer */
    int (*next)(int, struct epoll_event *, int, int) = atomic_load(&found);
    int error;

    if (!next) {
        next = dlsym(RTLD_NEXT, "epoll_wait");
        atomic_store(&found, next);
    }
    if (!strike(FAULT_EPOLL_WAIT, &error))
        return next(epfd, events, n, timeout_ms);
    if (error != FAULT_SLOW)
        return outcome(error);
    usleep(FAULT_SLOW_MS * 1000);
    return next(epfd, events, n, timeout_ms);
}

ssize_t write(int fd, const void *data, size_t len)
{
    static ssize_t (*_Atomic found)(int, const void *, size_t);
    ssize_t (*next)(int, const void *, size_t) = atomic_load(&found);
    int error;

    if (!next) {
        next = dlsym(RTLD_NEXT, "write");
        atomic_store(&found, next);
    }
    return len == sizeof(uint64_t) && strike(FAULT_WRITE, &error) ? outcome(error)
                                                                  : next(fd, data, len);
}

/* The linker leads our calls here (--wrap): sanitizers have the names of the C library's. */
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__real_realloc(void *old, size_t size);

static void *no_memory(int error)
{
    errno = error;
    return NULL;
}

void *__wrap_malloc(size_t size)
{
    int error;

    return strike(FAULT_MEMORY, &error) ? no_memory(error) : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    int error;

    return strike(FAULT_MEMORY, &error) ? no_memory(error) : __real_calloc(n, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    int error;

    return strike(FAULT_MEMORY, &error) ? no_memory(error) : __real_aligned_alloc(alignment, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    int error;

    return strike(FAULT_MEMORY, &error) ? no_memory(error) : __real_realloc(old, size);
}

unsigned fault_each_allocation(int (*attempt)(void *cookie), void *cookie)
{
    for (unsigned n = 0;; n++) {
        int rc;

        fault_plan(FAULT_MEMORY, n, 1, ENOMEM);
        rc = attempt(cookie);
        if (atomic_load(&faults[FAULT_MEMORY].times) > 0) { /* not one was left to fail */
            fault_plan(FAULT_MEMORY, 0, 0, 0);
            ck_assert_int_eq(rc, 0);
            return n;
        }
        ck_assert_int_eq(rc, -ENOMEM);
    }
}
