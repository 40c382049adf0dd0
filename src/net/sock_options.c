/* net/sock_options: see sock_options.h. */
#include "net/sock_options.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/clock.h"

/* Round up: 0 ms would mean "off". */
static unsigned sock_options_ms(int64_t ns)
{
    return (unsigned)((ns + NS_PER_MS - 1) / NS_PER_MS);
}

static int sock_options_apply(int fd, int family, const struct sock_options *o)
{
    const struct {
        int level, name;
        unsigned value; /* 0: kernel default */
        bool any_family;
    } wanted[] = {
        {SOL_SOCKET, SO_OOBINLINE, 1, true}, /* see note: inline */
        {SOL_SOCKET, SO_SNDBUF, o->send_buffer_bytes, true},
        {SOL_SOCKET, SO_RCVBUF, o->receive_buffer_bytes, false},
        {IPPROTO_TCP, TCP_NODELAY, o->nodelay, false},
        {SOL_SOCKET, SO_KEEPALIVE, o->keepalive.idle_s > 0, false},
        {IPPROTO_TCP, TCP_KEEPIDLE, o->keepalive.idle_s, false},
        {IPPROTO_TCP, TCP_KEEPINTVL, o->keepalive.interval_s, false},
        {IPPROTO_TCP, TCP_KEEPCNT, o->keepalive.count, false},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, sock_options_ms(o->user_timeout_ns), false},
    };

    for (unsigned i = 0; i < ARRAY_LEN(wanted); i++) {
        int value = (int)wanted[i].value;

        if (value == 0 || (family == AF_UNIX && !wanted[i].any_family))
            continue;
        if (setsockopt(fd, wanted[i].level, wanted[i].name, &value, sizeof(value)) < 0)
            return -errno;
    }
    return 0;
}

int sock_options_set(int fd, int family, const struct sock_options *o)
{
    return sock_options_apply(fd, family, o);
}

void sock_options_set_accepted(int fd, int family, const struct sock_options *o)
{
    if (family == AF_UNIX)
        (void)sock_options_apply(fd, family, o);
}
