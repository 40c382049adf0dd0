/* net/sock_options: what is asked for is what the kernel has, on accepted sockets as well. */
#include <errno.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/sock.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"

static const struct sock_options all = {
    .keepalive = {.idle_s = 33, .interval_s = 11, .count = 5},
    .user_timeout_ns = 4321 * NS_PER_MS,
    .nodelay = true,
    .send_buffer_bytes = 30000,
    .receive_buffer_bytes = 40000,
};
static struct address a;
static unsigned before;

static void setup(void)
{
    before = process_descriptors();
}

static void teardown(void)
{
    ck_assert_uint_eq(process_descriptors(), before);
}

/* The kernel doubles the size of a buffer (socket(7)). */
static void expect_all(int fd)
{
    ck_assert_int_eq(sockets_option(fd, SOL_SOCKET, SO_OOBINLINE), 1);
    ck_assert_int_eq(sockets_option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    ck_assert_int_eq(sockets_option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 33);
    ck_assert_int_eq(sockets_option(fd, IPPROTO_TCP, TCP_KEEPINTVL), 11);
    ck_assert_int_eq(sockets_option(fd, IPPROTO_TCP, TCP_KEEPCNT), 5);
    ck_assert_int_eq(sockets_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 4321);
    ck_assert_int_eq(sockets_option(fd, IPPROTO_TCP, TCP_NODELAY), 1);
    ck_assert_int_eq(sockets_option(fd, SOL_SOCKET, SO_SNDBUF), 60000);
    ck_assert_int_eq(sockets_option(fd, SOL_SOCKET, SO_RCVBUF), 80000);
}

static void expect_same(int fd, int as)
{
    static const int names[][2] = {
        {SOL_SOCKET, SO_KEEPALIVE},      {IPPROTO_TCP, TCP_KEEPIDLE}, {IPPROTO_TCP, TCP_KEEPINTVL},
        {IPPROTO_TCP, TCP_KEEPCNT},      {IPPROTO_TCP, TCP_NODELAY},  {SOL_SOCKET, SO_SNDBUF},
        {IPPROTO_TCP, TCP_USER_TIMEOUT}, {SOL_SOCKET, SO_RCVBUF},
    };

    for (unsigned i = 0; i < ARRAY_LEN(names); i++)
        ck_assert_int_eq(sockets_option(fd, names[i][0], names[i][1]),
                         sockets_option(as, names[i][0], names[i][1]));
}

static int listen_with(const struct sock_options *options)
{
    struct sock_listen_conf conf = {.backlog = 16, .options = *options};
    int fd;

    ck_assert_int_eq(sock_listen(&fd, &a, &conf), 0);
    ck_assert_int_eq(getsockname(fd, &a.u.sa, &a.len), 0);
    return fd;
}

static int connect_with(const struct sock_options *options)
{
    struct sock_connect_conf conf = {.options = *options};
    int fd, rc = sock_connect(&fd, &a, &conf);

    ck_assert(rc == 0 || rc == -EINPROGRESS);
    return fd;
}

static void loopback6(void)
{
    memset(&a, 0, sizeof(a));
    a.len = sizeof(a.u.in6);
    a.u.in6.sin6_family = AF_INET6;
    a.u.in6.sin6_addr = in6addr_loopback;
}

GROUP(sock_options, setup, teardown);

/* So that accepting costs no system call for any of them. */
TEST_EACH(sock_options, an_accepted_tcp_socket_has_all_from_its_listener, 2)
{
    int fd, client, server;

    sockets_loopback(&a, 0);
    if (_i == 1)
        loopback6();
    fd = listen_with(&all);
    expect_all(fd);
    client = sockets_connect(&a);
    server = accept(fd, NULL, NULL);
    expect_all(server);
    close(server);
    close(client);
    close(fd);
}

static int accepted_from(int listening)
{
    int client, server;

    ck_assert_int_eq(getsockname(listening, &a.u.sa, &a.len), 0);
    client = sockets_connect(&a);
    server = accept(listening, NULL, NULL);
    close(client);
    return server;
}

TEST(sock_options, added_options_apply_to_the_listener_and_to_clients_accepted_later)
{
    static const struct sock_options none;
    int fd, server;

    sockets_loopback(&a, 0);
    fd = listen_with(&none);
    sock_options_change(fd, AF_INET, &none, &all);
    expect_all(fd);
    server = accepted_from(fd);
    expect_all(server);
    close(server);
    close(fd);
}

TEST(sock_options, indexed_options_are_set_and_no_others)
{
    struct sock_options indexed = all;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    sock_options_index(&indexed);
    indexed.mss_bytes = 1200; /* later: not looked at */
    ck_assert_int_eq(sock_options_set(fd, AF_INET, &indexed), 0);
    expect_all(fd);
    ck_assert_int_ne(sockets_option(fd, IPPROTO_TCP, TCP_MAXSEG), 1200);
    indexed.rows = 0;
    ck_assert_int_eq(sock_options_set(fd, AF_INET, &indexed), 0);
    ck_assert_int_eq(sockets_option(fd, IPPROTO_TCP, TCP_MAXSEG), 1200);
    close(fd);
}

TEST(sock_options, removed_options_return_to_the_values_of_a_new_socket)
{
    static const struct sock_options none;
    int fd, untouched, server, as;

    sockets_loopback(&a, 0);
    fd = listen_with(&all);
    sockets_loopback(&a, 0);
    untouched = listen_with(&none);
    sock_options_change(fd, AF_INET, &all, &none);
    expect_same(fd, untouched);
    ck_assert_int_eq(sockets_option(fd, SOL_SOCKET, SO_BUF_LOCK), 0);
    server = accepted_from(fd);
    as = accepted_from(untouched);
    expect_same(server, as);
    close(server);
    close(as);
    close(untouched);
    close(fd);
}

TEST(sock_options, an_option_that_stays_is_not_touched)
{
    struct sock_options from = all, to = all;
    int fd;

    sockets_loopback(&a, 0);
    fd = listen_with(&all);
    from.keepalive.idle_s = 0; /* a lie, to see that it is set */
    to.keepalive.idle_s = 44;
    from.send_buffer_bytes = to.send_buffer_bytes = 0; /* else it would be reset */
    to.receive_buffer_bytes = 0;
    sock_options_change(fd, AF_INET, &from, &to);
    ck_assert_int_eq(sockets_option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 44);
    ck_assert_int_eq(sockets_option(fd, SOL_SOCKET, SO_SNDBUF), 60000);
    ck_assert_int_ne(sockets_option(fd, SOL_SOCKET, SO_RCVBUF), 80000);
    ck_assert_int_eq(sockets_option(fd, SOL_SOCKET, SO_BUF_LOCK), 1); /* the send buffer's */
    close(fd);
}

TEST(sock_options, connecting_socket_has_all_options_before_it_connects)
{
    int listening = sockets_listen(&a, 5), fd = connect_with(&all);

    expect_all(fd);
    close(fd);
    close(listening);
}

/*
 * Bytes of receive window that one step of the window field of ${fd} stands for, as its peer was
 * told.
 */
static unsigned window_step(int fd)
{
    struct tcp_info info;
    socklen_t len = sizeof(info);

    ck_assert_int_eq(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
    return 1U << info.tcpi_rcv_wscale;
}

TEST(sock_options, small_receive_buffer_is_set_before_the_window_scale_is_negotiated)
{
    static const struct sock_options small = {.receive_buffer_bytes = 4096};
    int fd, client, server;

    sockets_loopback(&a, 0);
    fd = listen_with(&small);
    client = connect_with(&small);
    server = sockets_accept(fd);
    ck_assert_uint_eq(window_step(server), 1);
    ck_assert_uint_eq(window_step(client), 1);
    close(server);
    close(client);
    close(fd);
}

TEST(sock_options, empty_options_leave_a_socket_unchanged)
{
    static const struct sock_options none;
    int fd = socket(AF_INET, SOCK_STREAM, 0), untouched = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_int_eq(sock_options_set(fd, AF_INET, &none), 0);
    expect_same(fd, untouched);
    close(untouched);
    close(fd);
}

TEST(sock_options, keepalive_values_left_out_are_the_kernels_defaults)
{
    static const struct sock_options silence = {.keepalive = {.idle_s = 7}};
    int fd = socket(AF_INET, SOCK_STREAM, 0), untouched = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_int_eq(sock_options_set(fd, AF_INET, &silence), 0);
    ck_assert_int_eq(sockets_option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    ck_assert_int_eq(sockets_option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 7);
    ck_assert_int_eq(sockets_option(fd, IPPROTO_TCP, TCP_KEEPINTVL),
                     sockets_option(untouched, IPPROTO_TCP, TCP_KEEPINTVL));
    ck_assert_int_eq(sockets_option(fd, IPPROTO_TCP, TCP_KEEPCNT),
                     sockets_option(untouched, IPPROTO_TCP, TCP_KEEPCNT));
    close(untouched);
    close(fd);
}

TEST(sock_options, the_limits_of_keepalive_are_the_kernels)
{
    static const struct sock_options most = {.keepalive = {SOCK_OPTIONS_KEEPALIVE_SECONDS,
                                                           SOCK_OPTIONS_KEEPALIVE_SECONDS,
                                                           SOCK_OPTIONS_KEEPALIVE_COUNT}};
    struct sock_options more = most;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_int_eq(sock_options_set(fd, AF_INET, &most), 0);
    more.keepalive.idle_s++;
    ck_assert_int_eq(sock_options_set(fd, AF_INET, &more), -EINVAL);
    more = most;
    more.keepalive.count++;
    ck_assert_int_eq(sock_options_set(fd, AF_INET, &more), -EINVAL);
    close(fd);
}

TEST(sock_options, a_user_timeout_is_never_rounded_to_zero)
{
    struct sock_options little = {.user_timeout_ns = 1};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_int_eq(sock_options_set(fd, AF_INET, &little), 0);
    ck_assert_int_eq(sockets_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 1);
    little.user_timeout_ns = 1500 * NS_PER_US;
    ck_assert_int_eq(sock_options_set(fd, AF_INET, &little), 0);
    ck_assert_int_eq(sockets_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 2);
    close(fd);
}

TEST(sock_options, a_unix_socket_takes_the_send_buffer_and_ignores_tcp_options)
{
    int fd, client;

    sockets_path(&a, "sock");
    fd = listen_with(&all);
    client = connect_with(&all);
    ck_assert_int_eq(sockets_option(client, SOL_SOCKET, SO_SNDBUF), 60000);
    ck_assert_int_eq(sockets_option(client, SOL_SOCKET, SO_KEEPALIVE), 0);
    close(client);
    close(fd);
    sock_unlink(&a);
}

TEST(sock_options, accepted_unix_socket_gets_the_options_that_it_does_not_inherit)
{
    int fd, client, server, inherited;

    sockets_path(&a, "sock");
    fd = listen_with(&all);
    client = sockets_connect(&a);
    server = accept(fd, NULL, NULL);
    inherited = sockets_option(server, SOL_SOCKET, SO_SNDBUF);
    ck_assert_int_ne(inherited, 60000); /* else the system call could go */
    sock_options_set_accepted(server, AF_UNIX, &all);
    ck_assert_int_eq(sockets_option(server, SOL_SOCKET, SO_SNDBUF), 60000);
    close(server);
    close(client);
    close(fd);
    sock_unlink(&a);
}

TEST(sock_options, an_accepted_tcp_socket_is_left_alone)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0), untouched = socket(AF_INET, SOCK_STREAM, 0);

    sock_options_set_accepted(fd, AF_INET, &all);
    expect_same(fd, untouched);
    close(untouched);
    close(fd);
}

/* What needs no privileges. */
static const struct sock_options rare = {.dscp = 46,
                                         .freebind = true,
                                         .mss_bytes = 999,
                                         .fastopen = 7,
                                         .defer_accept_s = 1,
                                         .congestion = "reno",
                                         .interface = "lo"};

static void expect_rare(int fd, bool is)
{
    char name[SOCK_OPTIONS_NAME_BYTES] = "";
    socklen_t len = sizeof(name);
    bool is_ipv6 = a.u.sa.sa_family == AF_INET6;

    ck_assert_int_eq(is_ipv6 ? sockets_option(fd, IPPROTO_IPV6, IPV6_TCLASS)
                             : sockets_option(fd, IPPROTO_IP, IP_TOS),
                     is ? 46 << 2 : 0);
    ck_assert_int_eq(sockets_option(fd, IPPROTO_IP, IP_FREEBIND), is);
    ck_assert_int_eq(sockets_option(fd, IPPROTO_TCP, TCP_MAXSEG) == 999, is);
    ck_assert_int_eq(sockets_option(fd, IPPROTO_TCP, TCP_FASTOPEN), is ? 7 : 0);
    ck_assert_int_eq(sockets_option(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT), is);
    ck_assert_int_eq(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len), 0);
    if (is)
        ck_assert_str_eq(name, "reno");
    len = sizeof(name);
    ck_assert_int_eq(getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, &len), 0);
    ck_assert_int_eq(len > 0 && strcmp(name, "lo") == 0, is);
}

TEST_EACH(sock_options, rare_options_are_set_and_changed_on_a_listener, 2)
{
    static const struct sock_options none;
    int fd;

    sockets_loopback(&a, 0);
    if (_i == 1)
        loopback6();
    fd = listen_with(&rare);
    expect_rare(fd, true);
    if (geteuid() == 0) {
        sock_options_change(fd, a.u.sa.sa_family, &rare, &none);
        expect_rare(fd, false);
    }
    sock_options_change(fd, a.u.sa.sa_family, &none, &rare);
    expect_rare(fd, true);
    close(fd);
}

TEST(sock_options, options_of_an_unknown_socket_are_taken_away_but_for_names)
{
    static const struct sock_options none;
    char name[SOCK_OPTIONS_NAME_BYTES] = "";
    socklen_t len = sizeof(name);
    int fd;

    sockets_loopback(&a, 0);
    fd = listen_with(&rare);
    sock_options_change(fd, AF_INET, NULL, &none);
    ck_assert_int_eq(sockets_option(fd, IPPROTO_IP, IP_TOS), 0);
    ck_assert_int_eq(sockets_option(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT), 0);
    ck_assert_int_eq(getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, &len), 0);
    ck_assert_str_eq(name, "lo");
    close(fd);
}

TEST(sock_options, a_probe_names_the_option_that_is_refused)
{
    struct sock_options bad = rare;
    const char *key;

    ck_assert_int_eq(sock_options_probe(&rare, &key), 0);
    bad = (struct sock_options){.interface = "nowhere0"};
    ck_assert_int_eq(sock_options_probe(&bad, &key), -ENODEV);
    ck_assert_str_eq(key, "interface");
    bad = (struct sock_options){.congestion = "nobody", .nodelay = true};
    ck_assert_int_lt(sock_options_probe(&bad, &key), 0);
    ck_assert_str_eq(key, "congestion");
    bad = (struct sock_options){.mss_bytes = 1};
    ck_assert_int_eq(sock_options_probe(&bad, &key), -EINVAL);
    ck_assert_str_eq(key, "mss");
    ck_assert(sock_options_are_rare(&bad));
    ck_assert(!sock_options_are_rare(&all));
}

TEST(sock_options, capabilities_are_needed_for_a_mark_and_an_interface)
{
    struct sock_options o = {.mark = 1};

    ck_assert_uint_eq(sock_options_capabilities(&o), 1U << CAP_NET_ADMIN);
    o = (struct sock_options){.interface = "lo", .congestion = "reno"};
    ck_assert_uint_eq(sock_options_capabilities(&o), 1U << CAP_NET_RAW);
    ck_assert_uint_eq(sock_options_capabilities(&all), 0);
}

TEST(sock_options, options_with_another_name_are_not_the_same)
{
    struct sock_options other = rare;

    ck_assert(sock_options_same(&rare, &other));
    strcpy(other.interface, "l1");
    ck_assert(!sock_options_same(&rare, &other));
    other = rare;
    other.mark = 1;
    ck_assert(!sock_options_same(&rare, &other));
}
