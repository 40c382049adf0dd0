/* support/sockets: see sockets.h. */
#include "support/sockets.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CHUNK_BYTES    16384
#define HEAR_SECONDS   10
#define STUFFED_MS     150
#define SMALL_BYTES    4096
#define PATTERN_PERIOD 251 /* prime, so that no buffer size is a multiple of it */

static int talk(int fd)
{
    struct timeval limit = {.tv_sec = HEAR_SECONDS};

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
    return fd;
}

static int unblock(int fd)
{
    ck_assert_int_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

void sockets_tcp(int *ours, int *theirs)
{
    struct address a;
    int fd = sockets_listen(&a, 1);

    *theirs = sockets_connect(&a);
    *ours = unblock(sockets_accept(fd));
    close(fd);
}

void sockets_unix(int *ours, int *theirs)
{
    int fds[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    *ours = unblock(fds[0]);
    *theirs = talk(fds[1]);
}

void sockets_small(int fd)
{
    int bytes = SMALL_BYTES;

    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)), 0);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)), 0);
}

void sockets_unix_small(int *ours, int *theirs)
{
    sockets_unix(ours, theirs);
    sockets_small(*ours);
    sockets_small(*theirs);
}

void sockets_loopback(struct address *out, unsigned port)
{
    memset(out, 0, sizeof(*out));
    out->len = sizeof(out->u.in);
    out->u.in.sin_family = AF_INET;
    out->u.in.sin_port = htons((uint16_t)port);
    out->u.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
}

static int sockets_hold(struct address *out)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, &out->u.sa, out->len), 0);
    ck_assert_int_eq(getsockname(fd, &out->u.sa, &out->len), 0);
    /* Not before bind(2): the port must be nobody else's. */
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
    return fd;
}

int sockets_bound(struct address *out)
{
    sockets_loopback(out, 0);
    return sockets_hold(out);
}

int sockets_bound_everywhere(struct address *out)
{
    int fd;

    sockets_loopback(out, 0);
    out->u.in.sin_addr.s_addr = INADDR_ANY;
    fd = sockets_hold(out);
    out->u.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return fd;
}

int sockets_listen(struct address *out, int backlog)
{
    int fd = sockets_bound(out);

    ck_assert_int_eq(listen(fd, backlog), 0);
    return talk(fd);
}

int sockets_accept(int fd)
{
    return talk(accept4(fd, NULL, NULL, SOCK_CLOEXEC));
}

int sockets_connect(const struct address *a)
{
    int fd = talk(socket(a->u.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));

    ck_assert_msg(connect(fd, &a->u.sa, a->len) == 0, "connect: %s", strerror(errno));
    return fd;
}

void sockets_path(struct address *out, const char *name)
{
    memset(out, 0, sizeof(*out));
    out->u.un.sun_family = AF_UNIX;
    snprintf(out->u.un.sun_path, sizeof(out->u.un.sun_path), "/tmp/reactord-test-%d-%s",
             (int)getpid(), name);
    out->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(out->u.un.sun_path) + 1);
    (void)unlink(out->u.un.sun_path);
}

static void say(int fd, const void *data, size_t len)
{
    const uint8_t *at = data;

    while (len > 0) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL);

        ck_assert_msg(n > 0, "send: %s", strerror(errno));
        at += n;
        len -= (size_t)n;
    }
}

/* A process that is stopped and goes on gets EINTR, if the socket has a time limit (signal(7)). */
static ssize_t sockets_receive(int fd, void *data, size_t len, int flags)
{
    ssize_t n;

    do
        n = recv(fd, data, len, flags);
    while (n < 0 && errno == EINTR);
    return n;
}

static void hear(int fd, void *data, size_t len)
{
    uint8_t *at = data;

    while (len > 0) {
        ssize_t n = sockets_receive(fd, at, len, 0);

        ck_assert_msg(n > 0, "%zu bytes missing: %s", len, n ? strerror(errno) : "end of file");
        at += n;
        len -= (size_t)n;
    }
}

void sockets_say(int fd, const char *text)
{
    say(fd, text, strlen(text));
}

void sockets_hear(int fd, const char *text)
{
    char heard[256] = "";

    ck_assert_uint_lt(strlen(text), sizeof(heard));
    hear(fd, heard, strlen(text));
    ck_assert_str_eq(heard, text);
}

static uint8_t period[PATTERN_PERIOD];

__attribute__((constructor)) static void fill_period(void)
{
    for (unsigned i = 0; i < PATTERN_PERIOD; i++)
        period[i] = (uint8_t)i;
}

void sockets_pattern(uint8_t *data, size_t from, size_t len)
{
    while (len > 0) {
        size_t at = from % PATTERN_PERIOD;
        size_t n = len < PATTERN_PERIOD - at ? len : PATTERN_PERIOD - at;

        memcpy(data, period + at, n);
        data += n;
        from += n;
        len -= n;
    }
}

void sockets_say_pattern(int fd, size_t from, size_t len)
{
    uint8_t data[CHUNK_BYTES];

    while (len > 0) {
        size_t n = len < sizeof(data) ? len : sizeof(data);

        sockets_pattern(data, from, n);
        say(fd, data, n);
        from += n;
        len -= n;
    }
}

void sockets_hear_pattern(int fd, size_t from, size_t len)
{
    uint8_t data[CHUNK_BYTES], expected[CHUNK_BYTES];

    while (len > 0) {
        size_t n = len < sizeof(data) ? len : sizeof(data);

        hear(fd, data, n);
        sockets_pattern(expected, from, n);
        ck_assert_msg(memcmp(data, expected, n) == 0, "other bytes than sent, at or behind %zu",
                      from);
        from += n;
        len -= n;
    }
}

size_t sockets_stuff(int fd, size_t from)
{
    struct pollfd room = {.fd = fd, .events = POLLOUT};
    uint8_t data[CHUNK_BYTES];
    size_t sent = 0;

    for (;;) {
        ssize_t n;

        sockets_pattern(data, from + sent, sizeof(data));
        n = send(fd, data, sizeof(data), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0)
            sent += (size_t)n;
        else if (errno != EAGAIN || poll(&room, 1, STUFFED_MS) == 0)
            return sent;
    }
}

void sockets_hear_end(int fd)
{
    char byte;
    ssize_t n = sockets_receive(fd, &byte, 1, 0);

    ck_assert_msg(n == 0, "not end of file but %s", n < 0 ? strerror(errno) : "bytes");
}

void sockets_hear_reset(int fd)
{
    char byte;
    ssize_t n = sockets_receive(fd, &byte, 1, 0);

    ck_assert_msg(n < 0 && errno == ECONNRESET, "not a reset but %s",
                  n == 0  ? "end of file"
                  : n < 0 ? strerror(errno)
                          : "bytes");
}

void sockets_hear_nothing(int fd)
{
    char byte;
    ssize_t n = sockets_receive(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);

    ck_assert_msg(n < 0 && errno == EAGAIN, "not nothing but %s",
                  n == 0  ? "end of file"
                  : n < 0 ? strerror(errno)
                          : "bytes");
}

void sockets_end(int fd)
{
    ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
}

void sockets_reset(int fd)
{
    struct linger reset = {.l_onoff = 1};

    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
    close(fd);
}

int sockets_option(int fd, int level, int name)
{
    int value = 0;
    socklen_t len = sizeof(value);

    ck_assert_int_eq(getsockopt(fd, level, name, &value, &len), 0);
    return value;
}

int sockets_listen_deaf(struct address *out, int *filler)
{
    int fd = sockets_listen(out, 0);

    *filler = sockets_connect(out);
    return fd;
}

struct address sockets_address(const char *text)
{
    struct address a[2];

    ck_assert_msg(address_parse(a, 2, text) == 1, "%s", text);
    return a[0];
}

void sockets_say_bytes(int fd, const void *data, size_t len)
{
    ck_assert_int_eq(send(fd, data, len, MSG_NOSIGNAL), (ssize_t)len);
}
