#include "net/sock_options.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#ifndef SO_BUF_LOCK
#define SO_BUF_LOCK 72 /* Linux 5.14 */
#endif

/* Bits of SO_BUF_LOCK; <linux/socket.h> conflicts with <sys/socket.h>. */
#define SOCK_OPTIONS_SEND_LOCK    1
#define SOCK_OPTIONS_RECEIVE_LOCK 2

/* Round up: 0 ms would mean "off". */
static unsigned sock_options_ms(int64_t ns)
{
    return (unsigned)((ns + NS_PER_MS - 1) / NS_PER_MS);
}

struct sock_option {
    int level, name;
    unsigned value; /* 0: kernel default */
    bool any_family;
};

#define SOCK_OPTIONS 9

static void sock_options_list(struct sock_option list[SOCK_OPTIONS], const struct sock_options *o)
{
    const struct sock_option wanted[SOCK_OPTIONS] = {
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

    memcpy(list, wanted, sizeof(wanted));
}

static bool sock_option_is_for(const struct sock_option *option, int family)
{
    return family != AF_UNIX || option->any_family;
}

static int sock_option_set(int fd, const struct sock_option *option, unsigned n)
{
    int value = (int)n;

    return setsockopt(fd, option->level, option->name, &value, sizeof(value)) < 0 ? -errno : 0;
}

static int sock_options_apply(int fd, int family, const struct sock_options *o)
{
    struct sock_option list[SOCK_OPTIONS];
    int rc = 0;

    sock_options_list(list, o);
    for (unsigned i = 0; rc == 0 && i < SOCK_OPTIONS; i++)
        if (list[i].value > 0 && sock_option_is_for(&list[i], family))
            rc = sock_option_set(fd, &list[i], list[i].value);
    return rc;
}

int sock_options_set(int fd, int family, const struct sock_options *o)
{
    return sock_options_apply(fd, family, o);
}

/* Set the value that a new socket has. The kernel doubles buffer sizes: set half. */
static void sock_option_reset(int fd, int family, const struct sock_option *option)
{
    bool is_buffer = option->name == SO_SNDBUF || option->name == SO_RCVBUF;
    int plain = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int value, locked = 0;
    socklen_t len = sizeof(value);

    if (plain < 0)
        return;
    if (getsockopt(plain, option->level, option->name, &value, &len) == 0)
        (void)sock_option_set(fd, option, (unsigned)(is_buffer ? value / 2 : value));
    close(plain);
    len = sizeof(locked);
    if (!is_buffer || getsockopt(fd, SOL_SOCKET, SO_BUF_LOCK, &locked, &len) < 0)
        return;
    locked &= option->name == SO_SNDBUF ? ~SOCK_OPTIONS_SEND_LOCK : ~SOCK_OPTIONS_RECEIVE_LOCK;
    (void)setsockopt(fd, SOL_SOCKET, SO_BUF_LOCK, &locked, sizeof(locked));
}

bool sock_options_same(const struct sock_options *a, const struct sock_options *b)
{
    struct sock_option one[SOCK_OPTIONS], other[SOCK_OPTIONS];
    bool same = true;

    sock_options_list(one, a);
    sock_options_list(other, b);
    for (unsigned i = 0; i < SOCK_OPTIONS; i++)
        same &= one[i].value == other[i].value;
    return same;
}

void sock_options_change(int fd, int family, const struct sock_options *from,
                         const struct sock_options *to)
{
    struct sock_option before[SOCK_OPTIONS], after[SOCK_OPTIONS];

    sock_options_list(before, from ? from : to);
    sock_options_list(after, to);
    for (unsigned i = 0; i < SOCK_OPTIONS; i++) {
        bool same = from && after[i].value == before[i].value;

        if (same || !sock_option_is_for(&after[i], family))
            continue;
        if (after[i].value > 0)
            (void)sock_option_set(fd, &after[i], after[i].value);
        else
            sock_option_reset(fd, family, &after[i]);
    }
}

void sock_options_set_accepted(int fd, int family, const struct sock_options *o)
{
    if (family == AF_UNIX)
        (void)sock_options_apply(fd, family, o);
}
