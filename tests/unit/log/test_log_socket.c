/* log/log_socket: messages over UDP and to unix sockets, whose daemon is away, slow or back. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "option/option.h"
#include "option/option_syslog.h"
#include "log/log_socket.h"
#include "net/address.h"
#include "stats/syslog_conf.h"
#include "support/log_lines.h"
#include "support/process.h"
#include "support/suite.h"
#include "support/until.h"

static char dir[] = "/tmp/reactord-test-syslog-XXXXXX";
static char path[64];
static struct log_socket *ls;
static int daemon_fd;
static unsigned before;

static void setup(void)
{
    ls = NULL;
    daemon_fd = -1;
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/log", dir);
    before = process_descriptors();
}

/* Every descriptor is closed exactly once, whatever happened. */
static void teardown(void)
{
    log_socket_close(ls);
    if (daemon_fd >= 0)
        close(daemon_fd);
    ck_assert_uint_eq(process_descriptors(), before);
    unlink(path);
    rmdir(dir);
}

/* Bind a socket of ${type} at ${a}; a port of 0 becomes the one that the kernel chose. */
static int serve(struct address *a, int type)
{
    const struct timeval patience = {.tv_sec = 10};
    int fd = socket(a->u.sa.sa_family, type | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1; /* no IPv6 */
    if (bind(fd, &a->u.sa, a->len) < 0) {
        close(fd);
        return -1;
    }
    if (type == SOCK_STREAM)
        ck_assert_int_eq(listen(fd, 5), 0);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    a->len = sizeof(a->u);
    ck_assert_int_eq(getsockname(fd, &a->u.sa, &a->len), 0);
    return fd;
}

static int serve_path(int type)
{
    struct address a[2];

    unlink(path);
    ck_assert_int_eq(address_parse(a, 2, path), 1);
    return serve(a, type);
}

/* Open a log to ${address}, with ${words}. */
static void open_log(const char *address, const char *words)
{
    char text[256];
    struct option_value v = {.text = text};
    struct syslog_conf conf;

    snprintf(text, sizeof(text), "syslog %s %s", address, words);
    ck_assert_msg(option_syslog_parse(&conf, &v) == 0, "%s", v.problem);
    ck_assert_int_eq(log_socket_open(&ls, &conf), 0);
}

/* Listen with UDP at ${host}, at any port, and open a log there. False: not possible here. */
static bool open_udp(const char *host, const char *words)
{
    char text[ADDRESS_TEXT_BYTES];
    struct address a;

    ck_assert_int_eq(address_parse_host(&a, host), 0);
    address_set_port(&a, 0);
    daemon_fd = serve(&a, SOCK_DGRAM);
    if (daemon_fd < 0)
        return false;
    open_log(address_format(text, sizeof(text), &a), words);
    return true;
}

static ssize_t put(const char *lines)
{
    return log_socket_put_lines(ls, lines, strlen(lines));
}

#define EXPECT_TAKEN(lines) ck_assert_int_eq(put(lines), (ssize_t)strlen(lines))

static ssize_t message_bytes; /* of the last message_of() */

/* The next message at ${fd}; "": none has come. */
static const char *message_of(int fd)
{
    static char text[1 << 16];

    message_bytes = recv(fd, text, sizeof(text) - 1, 0);
    text[message_bytes > 0 ? message_bytes : 0] = '\0';
    return text;
}

/* Read all messages that are there; returns their number. */
static unsigned drain(int fd)
{
    char text[1 << 12];
    unsigned n = 0;

    while (recv(fd, text, sizeof(text), MSG_DONTWAIT) >= 0)
        n++;
    return n;
}

GROUP(message, setup, teardown);

static const char *const hosts[] = {"127.0.0.1", "::1"};

TEST_EACH(message, each_line_is_a_datagram_of_udp, ARRAY_LEN(hosts))
{
    if (!open_udp(hosts[_i], "facility=local0 severity=notice tag=lb host=edge"))
        return;
    EXPECT_TAKEN("one\ntwo\n");
    log_lines_expect(message_of(daemon_fd),
                     "^<133>[A-Z][a-z]{2} [ 123][0-9] [0-9:]{8} edge lb\\[[0-9]+\\]: one$");
    log_lines_expect(message_of(daemon_fd), "^<133>.*: two$");
}

TEST(message, rfc5424_has_universal_time_and_nil_for_no_host)
{
    char pattern[160];

    snprintf(pattern, sizeof(pattern),
             "^<30>1 2[0-9]{3}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\\.[0-9]{3}Z "
             "- reactord %ld - - text$",
             (long)getpid());
    ck_assert(open_udp("127.0.0.1", "format=rfc5424 host=off"));
    EXPECT_TAKEN("text\n");
    log_lines_expect(message_of(daemon_fd), pattern);
}

TEST(message, a_line_of_the_log_has_its_severity_and_thread)
{
    ck_assert(open_udp("127.0.0.1", "format=rfc5424 host=edge facility=local7"));
    ck_assert(log_socket_put(ls, LOG_LEVEL_WARNING, "a\nb"));
    log_lines_expect(message_of(daemon_fd), "^<188>1 .* edge reactord [0-9]+ - - main: a\\\\nb$");
}

TEST(message, abstract_name_is_an_address)
{
    struct address a[2];
    char name[64];

    snprintf(name, sizeof(name), "@reactord-test-%ld", (long)getpid());
    ck_assert_int_eq(address_parse(a, 2, name), 1);
    daemon_fd = serve(a, SOCK_DGRAM);
    open_log(name, "");
    EXPECT_TAKEN("text\n");
    log_lines_expect(message_of(daemon_fd), "^<30>.*: text$");
}

TEST(message, a_thousand_lines_arrive_in_order)
{
    static char lines[1000 * 8 + 1];
    size_t done = 0;
    unsigned got = 0;

    daemon_fd = serve_path(SOCK_DGRAM);
    open_log(path, "");
    for (unsigned i = 0; i < 1000; i++)
        snprintf(lines + 8 * (size_t)i, 9, "line%03u\n", i);
    while (got < 1000) {
        ssize_t n = done < 8000 ? log_socket_put_lines(ls, lines + done, 8000 - done) : 0;
        char pattern[16];

        ck_assert(n >= 0 || n == -EAGAIN);
        for (done += n > 0 ? (size_t)n : 0; got < done / 8; got++) {
            snprintf(pattern, sizeof(pattern), ": line%03u$", got);
            log_lines_expect(message_of(daemon_fd), pattern);
        }
    }
}

TEST(message, a_longer_line_is_cut_visibly_and_not_in_a_character)
{
    static char line[2000];
    const char *message;

    memset(line, 'x', sizeof(line) - 2);
    line[sizeof(line) - 2] = '\n';
    ck_assert(open_udp("127.0.0.1", "length=600"));
    ck_assert_int_eq(log_socket_put_lines(ls, line, sizeof(line) - 1), sizeof(line) - 1);
    message = message_of(daemon_fd);
    ck_assert_uint_eq(strlen(message), 600);
    log_lines_expect(message, "xxx\\.\\.\\.$");
    for (size_t i = 0; i + 2 < sizeof(line); i += 2)
        memcpy(line + i, "\xc3\xa4", 2);
    line[sizeof(line) - 2] = '\n';
    for (unsigned i = 0; i < 2; i++) { /* one of them would cut in the middle */
        ck_assert_int_eq(log_socket_put_lines(ls, line + i, sizeof(line) - 1 - i),
                         sizeof(line) - 1 - i);
        message = message_of(daemon_fd);
        ck_assert_uint_ge(strlen(message), 599);
        ck_assert_str_eq(strchr(message, '.'), "...");
        ck_assert_int_eq((unsigned char)strchr(message, '.')[-1], 0xa4);
        line[0] = 'x';
    }
}

/* A socket takes messages of less than its send buffer only; SO_SNDBUF's least is some 4 KiB. */
TEST(message, a_line_that_the_socket_does_not_take_is_cut)
{
    static char line[60001];
    const int least = 1;
    const char *message;

    memset(line, 'x', sizeof(line) - 2);
    line[sizeof(line) - 2] = '\n';
    daemon_fd = serve_path(SOCK_DGRAM);
    open_log(path, "");
    for (int fd = 3; fd < 64; fd++) /* that of the log is one of them */
        if (fd != daemon_fd)
            (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &least, sizeof(least));
    ck_assert_int_eq(log_socket_put_lines(ls, line, sizeof(line) - 1), sizeof(line) - 1);
    message = message_of(daemon_fd);
    ck_assert_uint_ge(strlen(message), 1000);
    log_lines_expect(message, "xxx\\.\\.\\.$");
}

/* ---- a daemon that is away ---- */

GROUP(away, setup, teardown);

TEST(away, missing_daemon_is_found_when_it_comes)
{
    open_log(path, "");
    ck_assert_int_eq(log_socket_error(ls), -ENOENT);
    ck_assert_int_eq(put("lost\n"), -ENOENT);
    ck_assert(!log_socket_put(ls, LOG_LEVEL_INFO, "lost"));
    ck_assert(!log_socket_recovered(ls));
    daemon_fd = serve_path(SOCK_DGRAM);
    ck_assert(log_socket_recovered(ls));
    EXPECT_TAKEN("found\n");
    log_lines_expect(message_of(daemon_fd), ": found$");
}

TEST(away, daemon_that_takes_connections_is_found_when_it_comes)
{
    int connection;

    open_log(path, "");
    ck_assert_int_eq(put("lost\n"), -ENOENT);
    daemon_fd = serve_path(SOCK_STREAM);
    EXPECT_TAKEN("one\ntwo\n");
    connection = accept(daemon_fd, NULL, NULL);
    log_lines_expect(message_of(connection), ": one$"); /* ends with the NUL */
    close(connection);
}

/* A message of a stream has a NUL at its end, a datagram has none. */
TEST(away, restarted_daemon_may_take_the_other_kind_of_socket)
{
    static const int types[] = {SOCK_DGRAM, SOCK_STREAM, SOCK_DGRAM};

    for (unsigned i = 0; i < ARRAY_LEN(types); i++) {
        int connection = -1;
        const char *message;

        daemon_fd = serve_path(types[i]);
        if (i == 0)
            open_log(path, "");
        EXPECT_TAKEN("text\n");
        if (types[i] == SOCK_STREAM)
            connection = accept(daemon_fd, NULL, NULL);
        message = message_of(connection >= 0 ? connection : daemon_fd);
        log_lines_expect(message, ": text$");
        ck_assert_int_eq(message_bytes, (ssize_t)strlen(message) + (types[i] == SOCK_STREAM));
        if (connection >= 0)
            close(connection);
        close(daemon_fd);
        daemon_fd = -1;
        ck_assert_int_lt(put("lost\n"), 0);
    }
}

TEST(away, daemon_that_does_not_read_keeps_lines_with_the_caller)
{
    ssize_t n;
    unsigned taken = 0;

    daemon_fd = serve_path(SOCK_DGRAM);
    open_log(path, "");
    while ((n = put("a\nb\nc\nd\n")) > 0)
        taken += (unsigned)n / 2;
    ck_assert_int_eq(n, -EAGAIN);
    ck_assert(!log_socket_put(ls, LOG_LEVEL_INFO, "lost"));
    ck_assert(log_socket_recovered(ls)); /* it is there */
    ck_assert_uint_eq(drain(daemon_fd), taken);
    EXPECT_TAKEN("e\n");
    log_lines_expect(message_of(daemon_fd), ": e$");
}

/* See note: refused. Loopback answers at once. */
TEST(away, closed_port_of_udp_is_noticed_and_tried_once_a_second)
{
    struct address a = {.len = sizeof(a.u)};
    char host[32];
    const char *message;

    snprintf(host, sizeof(host), "127.77.1.%ld", getpid() % 250 + 1L); /* others bind 127.0.0.1 */
    ck_assert(open_udp(host, ""));
    ck_assert_int_eq(getsockname(daemon_fd, &a.u.sa, &a.len), 0);
    close(daemon_fd);
    daemon_fd = -1;
    UNTIL(put("unknown\n") == -ECONNREFUSED);
    ck_assert(!log_socket_recovered(ls));
    UNTIL(put("lost\n") == -ECONNREFUSED);
    PAUSE_MS(1100);
    UNTIL(put("tried\nlost\n") == -ECONNREFUSED);
    daemon_fd = serve(&a, SOCK_DGRAM);
    ck_assert_int_ge(daemon_fd, 0);
    UNTIL(put("back\n") > 0);
    log_lines_expect(message_of(daemon_fd), ": back$");
    UNTIL(log_socket_recovered(ls));
    EXPECT_TAKEN("one\ntwo\n");
    do
        message = message_of(daemon_fd);
    while (strstr(message, ": back"));
    log_lines_expect(message, ": one$");
    log_lines_expect(message_of(daemon_fd), ": two$");
}
