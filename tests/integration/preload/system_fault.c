/* preload/system_fault: a system that lacks IPv6 or has no thread left: `value` is the error. */
#include <pthread.h>
#include <sys/socket.h>

#include "plan.h"

/* As in test_bare.py. */
enum fault { IPV6_SOCKET, THREAD_CREATE };

int socket(int domain, int type, int protocol)
{
    const struct plan_fault *f = domain == AF_INET6 ? plan_strikes(IPV6_SOCKET) : NULL;

    if (!f)
        return PLAN_NEXT(socket)(domain, type, protocol);
    errno = f->value;
    return -1;
}

int pthread_create(pthread_t *id, const pthread_attr_t *how, void *(*run)(void *), void *arg)
{
    const struct plan_fault *f = plan_strikes(THREAD_CREATE);

    return f ? f->value : PLAN_NEXT(pthread_create)(id, how, run, arg);
}
