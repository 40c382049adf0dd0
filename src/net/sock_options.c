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
    enum sock_option_for of;
    const char *key; /* name in the configuration */
};

/* What an option is set to. */
struct sock_option_value {
    unsigned number;  /* 0: kernel default */
    const char *text; /* of an option that is a text; empty: kernel default; NULL: none */
};

enum sock_option_row {
    SOCK_OPTION_INLINE,
    SOCK_OPTION_SEND_BUFFER,
    SOCK_OPTION_RECEIVE_BUFFER,
    SOCK_OPTION_NODELAY,
    SOCK_OPTION_KEEPALIVE,
    SOCK_OPTION_KEEPALIVE_IDLE,
    SOCK_OPTION_KEEPALIVE_INTERVAL,
    SOCK_OPTION_KEEPALIVE_COUNT,
    SOCK_OPTION_USER_TIMEOUT,
    SOCK_OPTION_INTERFACE,
    SOCK_OPTION_FREEBIND,
    SOCK_OPTION_TRANSPARENT,
    SOCK_OPTION_TRANSPARENT_IPV6,
    SOCK_OPTION_MARK,
    SOCK_OPTION_DSCP,
    SOCK_OPTION_DSCP_IPV6,
    SOCK_OPTION_CONGESTION,
    SOCK_OPTION_MSS,
    SOCK_OPTION_FASTOPEN,
    SOCK_OPTION_DEFER_ACCEPT,
    SOCK_OPTIONS
};

static const struct sock_option sock_option_rows[SOCK_OPTIONS] = {
    [SOCK_OPTION_INLINE] = {SOL_SOCKET, SO_OOBINLINE, SOCK_OPTION_ANY, ""}, /* see note: inline */
    [SOCK_OPTION_SEND_BUFFER] = {SOL_SOCKET, SO_SNDBUF, SOCK_OPTION_ANY, "send_buffer"},
    [SOCK_OPTION_RECEIVE_BUFFER] = {SOL_SOCKET, SO_RCVBUF, SOCK_OPTION_TCP, "receive_buffer"},
    [SOCK_OPTION_NODELAY] = {IPPROTO_TCP, TCP_NODELAY, SOCK_OPTION_TCP, "nodelay"},
    [SOCK_OPTION_KEEPALIVE] = {SOL_SOCKET, SO_KEEPALIVE, SOCK_OPTION_TCP, "keepalive"},
    [SOCK_OPTION_KEEPALIVE_IDLE] = {IPPROTO_TCP, TCP_KEEPIDLE, SOCK_OPTION_TCP, "keepalive"},
    [SOCK_OPTION_KEEPALIVE_INTERVAL] = {IPPROTO_TCP, TCP_KEEPINTVL, SOCK_OPTION_TCP, "keepalive"},
    [SOCK_OPTION_KEEPALIVE_COUNT] = {IPPROTO_TCP, TCP_KEEPCNT, SOCK_OPTION_TCP, "keepalive"},
    [SOCK_OPTION_USER_TIMEOUT] = {IPPROTO_TCP, TCP_USER_TIMEOUT, SOCK_OPTION_TCP, "user_timeout"},
    [SOCK_OPTION_INTERFACE] = {SOL_SOCKET, SO_BINDTODEVICE, SOCK_OPTION_TCP, "interface"},
    [SOCK_OPTION_FREEBIND] = {IPPROTO_IP, IP_FREEBIND, SOCK_OPTION_TCP, "freebind"}, /* IPv6 too */
    [SOCK_OPTION_TRANSPARENT] = {IPPROTO_IP, IP_TRANSPARENT, SOCK_OPTION_IPV4, "transparent"},
    [SOCK_OPTION_TRANSPARENT_IPV6] = {IPPROTO_IPV6, IPV6_TRANSPARENT, SOCK_OPTION_IPV6,
                                      "transparent"},
    [SOCK_OPTION_MARK] = {SOL_SOCKET, SO_MARK, SOCK_OPTION_TCP, "mark"},
    [SOCK_OPTION_DSCP] = {IPPROTO_IP, IP_TOS, SOCK_OPTION_IPV4, "dscp"},
    [SOCK_OPTION_DSCP_IPV6] = {IPPROTO_IPV6, IPV6_TCLASS, SOCK_OPTION_IPV6, "dscp"},
    [SOCK_OPTION_CONGESTION] = {IPPROTO_TCP, TCP_CONGESTION, SOCK_OPTION_TCP, "congestion"},
    [SOCK_OPTION_MSS] = {IPPROTO_TCP, TCP_MAXSEG, SOCK_OPTION_TCP, "mss"},
    [SOCK_OPTION_FASTOPEN] = {IPPROTO_TCP, TCP_FASTOPEN, SOCK_OPTION_TCP, "fastopen"},
    [SOCK_OPTION_DEFER_ACCEPT] = {IPPROTO_TCP, TCP_DEFER_ACCEPT, SOCK_OPTION_TCP, "defer_accept"},
};

static unsigned sock_option_number(const struct sock_options *o, enum sock_option_row row)
{
    switch (row) {
    case SOCK_OPTION_INLINE: return !o->mptcp;
    case SOCK_OPTION_SEND_BUFFER: return o->send_buffer_bytes;
    case SOCK_OPTION_RECEIVE_BUFFER: return o->receive_buffer_bytes;
    case SOCK_OPTION_NODELAY: return o->nodelay && !o->nodelay_later;
    case SOCK_OPTION_KEEPALIVE: return o->keepalive.idle_s > 0;
    case SOCK_OPTION_KEEPALIVE_IDLE: return o->keepalive.idle_s;
    case SOCK_OPTION_KEEPALIVE_INTERVAL: return o->keepalive.interval_s;
    case SOCK_OPTION_KEEPALIVE_COUNT: return o->keepalive.count;
    case SOCK_OPTION_USER_TIMEOUT: return sock_options_ms(o->user_timeout_ns);
    case SOCK_OPTION_FREEBIND: return o->freebind;
    case SOCK_OPTION_TRANSPARENT:
    case SOCK_OPTION_TRANSPARENT_IPV6: return o->transparent;
    case SOCK_OPTION_MARK: return o->mark;
    case SOCK_OPTION_DSCP:
    case SOCK_OPTION_DSCP_IPV6: return o->dscp << 2;
    case SOCK_OPTION_MSS: return o->mss_bytes;
    case SOCK_OPTION_FASTOPEN: return o->fastopen;
    case SOCK_OPTION_DEFER_ACCEPT: return o->defer_accept_s;
    case SOCK_OPTION_INTERFACE:
    case SOCK_OPTION_CONGESTION:
    case SOCK_OPTIONS: break;
    }
    return 0;
}

static struct sock_option_value sock_option_value(const struct sock_options *o,
                                                  enum sock_option_row row)
{
    if (row == SOCK_OPTION_INTERFACE)
        return (struct sock_option_value){.text = o->interface};
    if (row == SOCK_OPTION_CONGESTION)
        return (struct sock_option_value){.text = o->congestion};
    return (struct sock_option_value){.number = sock_option_number(o, row)};
}

static bool sock_option_is_set(struct sock_option_value value)
{
    return value.text ? value.text[0] != '\0' : value.number > 0;
}

static bool sock_option_equal(struct sock_option_value a, struct sock_option_value b)
{
    return a.text ? strcmp(a.text, b.text) == 0 : a.number == b.number;
}

/* Bits of the rows that are set in ${o}. */
static uint32_t sock_options_find(const struct sock_options *o)
{
    uint32_t rows = 0;

    for (unsigned row = 0; row < SOCK_OPTIONS; row++)
        rows |= (uint32_t)sock_option_is_set(sock_option_value(o, row)) << row;
    return rows;
}

void sock_options_index(struct sock_options *o)
{
    o->rows = SOCK_OPTIONS_INDEXED | sock_options_find(o);
}

bool sock_options_are_rare(const struct sock_options *o)
{
    return o->mptcp || sock_options_find(o) >> SOCK_OPTION_INTERFACE != 0;
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

static int sock_option_set(int fd, const struct sock_option *option, struct sock_option_value value)
{
    return value.text ? sock_option_set_text(fd, option, value.text)
                      : sock_option_set_number(fd, option, value.number);
}

/* On failure ${key} is the option's. */
static int sock_options_apply(int fd, int family, const struct sock_options *o, const char **key)
{
    uint32_t rows = (o->rows != 0 ? o->rows : sock_options_find(o)) & ~SOCK_OPTIONS_INDEXED;
    int rc = 0;

    for (; rc == 0 && rows != 0; rows &= rows - 1) {
        unsigned row = (unsigned)__builtin_ctz(rows);

        if (!sock_option_is_for(&sock_option_rows[row], family))
            continue;
        rc = sock_option_set(fd, &sock_option_rows[row], sock_option_value(o, row));
        *key = sock_option_rows[row].key;
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
    int rc = o->netns ? netns_enter(o->netns) : 0, fd;

    if (rc < 0)
        return rc == -EPERM ? -SOCK_OPTIONS_NO_NAMESPACE : rc;
    fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
                sock_options_protocol(o, family));
    rc = fd < 0 ? -errno : fd;
    if (o->netns)
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
static void sock_option_reset(int fd, int family, enum sock_option_row row, struct netns *netns)
{
    const struct sock_option *option = &sock_option_rows[row];
    int plain = sock_options_open(&(struct sock_options){.netns = netns}, family);

    if (plain < 0)
        return;
    if (row == SOCK_OPTION_INTERFACE || row == SOCK_OPTION_CONGESTION)
        sock_option_reset_text(fd, plain, option);
    else
        sock_option_reset_number(fd, plain, option);
    close(plain);
}

bool sock_options_same(const struct sock_options *a, const struct sock_options *b)
{
    bool same = a->mptcp == b->mptcp && netns_id(a->netns) == netns_id(b->netns);

    for (unsigned row = 0; row < SOCK_OPTIONS; row++)
        same &= sock_option_equal(sock_option_value(a, row), sock_option_value(b, row));
    return same;
}

void sock_options_change(int fd, int family, const struct sock_options *from,
                         const struct sock_options *to)
{
    for (unsigned row = 0; row < SOCK_OPTIONS; row++) {
        const struct sock_option *option = &sock_option_rows[row];
        struct sock_option_value value = sock_option_value(to, row);
        bool same = from && sock_option_equal(value, sock_option_value(from, row));

        if (same || !sock_option_is_for(option, family))
            continue;
        if (sock_option_is_set(value))
            (void)sock_option_set(fd, option, value);
        else if (from || !value.text)
            sock_option_reset(fd, family, row, to->netns);
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
