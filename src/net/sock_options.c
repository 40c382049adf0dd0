#include "net/sock_options.h"

#include <errno.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/netns.h"

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262 /* Linux 5.6 */
#endif

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

enum sock_option_for { SOCK_OPTION_TCP, SOCK_OPTION_IPV4, SOCK_OPTION_IPV6, SOCK_OPTION_ANY };

struct sock_option {
    int level, name;
    unsigned value;   /* 0: kernel default */
    const char *text; /* value of an option that is a text; empty: kernel default; NULL: none */
    enum sock_option_for of;
    const char *key; /* name in the configuration */
};

/* All options, and the first of them, which sessions commonly have. */
#define SOCK_OPTIONS       19
#define SOCK_OPTIONS_USUAL 9

static void sock_options_list_usual(struct sock_option *list, const struct sock_options *o)
{
    const struct sock_option wanted[SOCK_OPTIONS_USUAL] = {
        {SOL_SOCKET, SO_OOBINLINE, !o->mptcp, NULL, SOCK_OPTION_ANY, ""}, /* see note: inline */
        {SOL_SOCKET, SO_SNDBUF, o->send_buffer_bytes, NULL, SOCK_OPTION_ANY, "send_buffer"},
        {SOL_SOCKET, SO_RCVBUF, o->receive_buffer_bytes, NULL, SOCK_OPTION_TCP, "receive_buffer"},
        {IPPROTO_TCP, TCP_NODELAY, o->nodelay, NULL, SOCK_OPTION_TCP, "nodelay"},
        {SOL_SOCKET, SO_KEEPALIVE, o->keepalive.idle_s > 0, NULL, SOCK_OPTION_TCP, "keepalive"},
        {IPPROTO_TCP, TCP_KEEPIDLE, o->keepalive.idle_s, NULL, SOCK_OPTION_TCP, "keepalive"},
        {IPPROTO_TCP, TCP_KEEPINTVL, o->keepalive.interval_s, NULL, SOCK_OPTION_TCP, "keepalive"},
        {IPPROTO_TCP, TCP_KEEPCNT, o->keepalive.count, NULL, SOCK_OPTION_TCP, "keepalive"},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, sock_options_ms(o->user_timeout_ns), NULL, SOCK_OPTION_TCP,
         "user_timeout"},
    };

    memcpy(list, wanted, sizeof(wanted));
}

static void sock_options_list_rare(struct sock_option *list, const struct sock_options *o)
{
    const struct sock_option wanted[SOCK_OPTIONS - SOCK_OPTIONS_USUAL] = {
        {SOL_SOCKET, SO_BINDTODEVICE, 0, o->interface, SOCK_OPTION_TCP, "interface"},
        {IPPROTO_IP, IP_TRANSPARENT, o->transparent, NULL, SOCK_OPTION_IPV4, "transparent"},
        {IPPROTO_IPV6, IPV6_TRANSPARENT, o->transparent, NULL, SOCK_OPTION_IPV6, "transparent"},
        {SOL_SOCKET, SO_MARK, o->mark, NULL, SOCK_OPTION_TCP, "mark"},
        {IPPROTO_IP, IP_TOS, o->dscp << 2, NULL, SOCK_OPTION_IPV4, "dscp"},
        {IPPROTO_IPV6, IPV6_TCLASS, o->dscp << 2, NULL, SOCK_OPTION_IPV6, "dscp"},
        {IPPROTO_TCP, TCP_CONGESTION, 0, o->congestion, SOCK_OPTION_TCP, "congestion"},
        {IPPROTO_TCP, TCP_MAXSEG, o->mss_bytes, NULL, SOCK_OPTION_TCP, "mss"},
        {IPPROTO_TCP, TCP_FASTOPEN, o->fastopen, NULL, SOCK_OPTION_TCP, "fastopen"},
        {IPPROTO_TCP, TCP_DEFER_ACCEPT, o->defer_accept_s, NULL, SOCK_OPTION_TCP, "defer_accept"},
    };

    memcpy(list, wanted, sizeof(wanted));
}

bool sock_options_are_rare(const struct sock_options *o)
{
    return o->mptcp || o->transparent ||
           (o->mark | o->dscp | o->mss_bytes | o->fastopen | o->defer_accept_s) != 0 ||
           o->congestion[0] != '\0' || o->interface[0] != '\0';
}

static void sock_options_list(struct sock_option list[SOCK_OPTIONS], const struct sock_options *o)
{
    sock_options_list_usual(list, o);
    sock_options_list_rare(list + SOCK_OPTIONS_USUAL, o);
}

static bool sock_option_is_for(const struct sock_option *option, int family)
{
    switch (option->of) {
    case SOCK_OPTION_ANY: return true;
    case SOCK_OPTION_IPV4: return family == AF_INET;
    case SOCK_OPTION_IPV6: return family == AF_INET6;
    case SOCK_OPTION_TCP: break;
    }
    return family != AF_UNIX;
}

static bool sock_option_is_wanted(const struct sock_option *option, int family)
{
    bool is_set = option->value > 0 || (option->text && option->text[0] != '\0');

    return is_set && sock_option_is_for(option, family);
}

static bool sock_option_equal(const struct sock_option *a, const struct sock_option *b)
{
    return a->text ? strcmp(a->text, b->text) == 0 : a->value == b->value;
}

static int sock_option_set_text(int fd, const struct sock_option *option, const char *text)
{
    socklen_t len = (socklen_t)strlen(text);

    return setsockopt(fd, option->level, option->name, text, len) < 0 ? -errno : 0;
}

static int sock_option_set_number(int fd, const struct sock_option *option, unsigned n)
{
    int value = (int)n;

    return setsockopt(fd, option->level, option->name, &value, sizeof(value)) < 0 ? -errno : 0;
}

static int sock_option_set(int fd, const struct sock_option *option)
{
    return option->text ? sock_option_set_text(fd, option, option->text)
                        : sock_option_set_number(fd, option, option->value);
}

/* On failure ${key} is the option's. */
static int sock_options_apply(int fd, int family, const struct sock_options *o, const char **key)
{
    struct sock_option list[SOCK_OPTIONS];
    unsigned n = SOCK_OPTIONS_USUAL;
    int rc = 0;

    sock_options_list_usual(list, o);
    if (sock_options_are_rare(o)) {
        sock_options_list_rare(list + n, o);
        n = SOCK_OPTIONS;
    }
    for (unsigned i = 0; rc == 0 && i < n; i++) {
        if (!sock_option_is_wanted(&list[i], family))
            continue;
        rc = sock_option_set(fd, &list[i]);
        *key = list[i].key;
    }
    return rc;
}

int sock_options_set(int fd, int family, const struct sock_options *o)
{
    const char *key;

    return sock_options_apply(fd, family, o, &key);
}

int sock_options_protocol(const struct sock_options *o, int family)
{
    return o->mptcp && family != AF_UNIX ? IPPROTO_MPTCP : 0;
}

int sock_options_open(const struct sock_options *o, int family)
{
    int rc = netns_enter(o->netns), fd;

    if (rc < 0)
        return rc == -EPERM ? -SOCK_OPTIONS_NO_NAMESPACE : rc;
    fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
                sock_options_protocol(o, family));
    rc = fd < 0 ? -errno : fd;
    netns_leave(o->netns);
    return rc;
}

int sock_options_probe(const struct sock_options *o, const char **key)
{
    int family = AF_INET, fd = sock_options_open(o, family), rc;

    if (fd == -EAFNOSUPPORT) {
        family = AF_INET6;
        fd = sock_options_open(o, family);
    }
    *key = o->mptcp ? "mptcp" : NULL;
    if (fd < 0)
        return fd;
    rc = sock_options_apply(fd, family, o, key);
    close(fd);
    return rc;
}

/* May any process use the congestion control ${name}? */
static bool sock_options_is_allowed(const char *name)
{
    char list[1024], *word, *rest = list;
    FILE *f = fopen("/proc/sys/net/ipv4/tcp_allowed_congestion_control", "re");
    bool found = false;

    if (f && fgets(list, sizeof(list), f))
        while (!found && (word = strsep(&rest, " \n")))
            found = strcmp(word, name) == 0;
    if (f)
        fclose(f);
    return found;
}

unsigned sock_options_capabilities(const struct sock_options *o)
{
    unsigned needed = 0;

    if (o->mark > 0 || (o->congestion[0] != '\0' && !sock_options_is_allowed(o->congestion)))
        needed |= 1U << CAP_NET_ADMIN;
    if (o->interface[0] != '\0' || o->transparent)
        needed |= 1U << CAP_NET_RAW;
    if (o->netns)
        needed |= 1U << CAP_SYS_ADMIN;
    return needed;
}

/* Set the text that a new socket has: that of ${plain}, or of SO_BINDTODEVICE none. */
static void sock_option_reset_text(int fd, int plain, const struct sock_option *option)
{
    char text[SOCK_OPTIONS_NAME_BYTES + 1] = "";
    socklen_t len = SOCK_OPTIONS_NAME_BYTES;

    if (getsockopt(plain, option->level, option->name, text, &len) == 0)
        (void)sock_option_set_text(fd, option, text);
}

/* The kernel doubles buffer sizes: set half. TCP_MAXSEG is 0 for a new socket, which reads 536. */
static void sock_option_reset_number(int fd, int plain, const struct sock_option *option)
{
    bool is_buffer = option->name == SO_SNDBUF || option->name == SO_RCVBUF;
    int value, locked = 0;
    socklen_t len = sizeof(value);

    if (option->level == IPPROTO_TCP && option->name == TCP_MAXSEG) {
        (void)sock_option_set_number(fd, option, 0);
        return;
    }
    is_buffer = is_buffer && option->level == SOL_SOCKET;
    if (getsockopt(plain, option->level, option->name, &value, &len) == 0)
        (void)sock_option_set_number(fd, option, (unsigned)(is_buffer ? value / 2 : value));
    len = sizeof(locked);
    if (!is_buffer || getsockopt(fd, SOL_SOCKET, SO_BUF_LOCK, &locked, &len) < 0)
        return;
    locked &= option->name == SO_SNDBUF ? ~SOCK_OPTIONS_SEND_LOCK : ~SOCK_OPTIONS_RECEIVE_LOCK;
    (void)setsockopt(fd, SOL_SOCKET, SO_BUF_LOCK, &locked, sizeof(locked));
}

/* Set the value that a new socket has. */
static void sock_option_reset(int fd, int family, const struct sock_option *option,
                              struct netns *netns)
{
    int plain = sock_options_open(&(struct sock_options){.netns = netns}, family);

    if (plain < 0)
        return;
    if (option->text)
        sock_option_reset_text(fd, plain, option);
    else
        sock_option_reset_number(fd, plain, option);
    close(plain);
}

bool sock_options_same(const struct sock_options *a, const struct sock_options *b)
{
    struct sock_option one[SOCK_OPTIONS], other[SOCK_OPTIONS];
    bool same = a->mptcp == b->mptcp && netns_id(a->netns) == netns_id(b->netns);

    sock_options_list(one, a);
    sock_options_list(other, b);
    for (unsigned i = 0; i < SOCK_OPTIONS; i++)
        same &= sock_option_equal(&one[i], &other[i]);
    return same;
}

void sock_options_change(int fd, int family, const struct sock_options *from,
                         const struct sock_options *to)
{
    struct sock_option before[SOCK_OPTIONS], after[SOCK_OPTIONS];

    sock_options_list(before, from ? from : to);
    sock_options_list(after, to);
    for (unsigned i = 0; i < SOCK_OPTIONS; i++) {
        bool same = from && sock_option_equal(&after[i], &before[i]);

        if (same || !sock_option_is_for(&after[i], family))
            continue;
        if (sock_option_is_wanted(&after[i], family))
            (void)sock_option_set(fd, &after[i]);
        else if (from || !after[i].text)
            sock_option_reset(fd, family, &after[i], to->netns);
    }
}

void sock_options_set_accepted(int fd, int family, const struct sock_options *o)
{
    const int on = 1;
    const char *key;

    if (family == AF_UNIX)
        (void)sock_options_apply(fd, family, o, &key);
    else if (o->mptcp)
        (void)setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on)); /* of a client of TCP */
}
