/* net/sock: options are set, errors are told apart, and a descriptor that failed is closed. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "net/sock.h"
#include "support/listen_socket.h"
#include "net/tcp_figures.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

static struct sock_connect_conf connecting;

/* Where connecting.sources points at. */
static union {
    struct sock_sources sources;
    uint8_t bytes[sizeof(struct sock_sources) + 4 * sizeof(struct address)];
} from;

static struct address *add_source(void)
{
    connecting.sources = &from.sources;
    return &from.sources.list[from.sources.n++];
}

/* Listen on ${a}, and learn the port the kernel chose. */
static int listen_on(const struct sock_listen_conf *with)
{
    int fd;

    ck_assert_int_eq(sock_listen(&fd, &listen_socket.a, with), 0);
    ck_assert_int_eq(getsockname(fd, &listen_socket.a.u.sa, &listen_socket.a.len), 0);
    return fd;
}

static int listen_loopback(void)
{
    sockets_loopback(&listen_socket.a, 0);
    return listen_on(&listen_socket.conf);
}

GROUP(sock, listen_socket_setup, listen_socket_teardown);

TEST(sock, a_listener_does_not_block_and_is_not_inherited)
{
    int fd = listen_loopback();

    ck_assert_int_ne(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    ck_assert_int_ne(sockets_option(fd, SOL_SOCKET, SO_ACCEPTCONN), 0);
    ck_assert_int_ne(sockets_option(fd, SOL_SOCKET, SO_REUSEADDR), 0);
    ck_assert_int_eq(sockets_option(fd, SOL_SOCKET, SO_REUSEPORT), 0);
    close(fd);
}

TEST(sock, an_accepted_socket_inherits_the_options)
{
    struct sock_listen_conf with = {.backlog = 16, .options = {.nodelay = true}};
    int fd, client, server;

    sockets_loopback(&listen_socket.a, 0);
    fd = listen_on(&with);
    client = sockets_connect(&listen_socket.a);
    server = accept(fd, NULL, NULL);
    ck_assert_int_ne(sockets_option(server, IPPROTO_TCP, TCP_NODELAY), 0);
    close(server);
    close(client);
    close(fd);
}

TEST(sock, an_ipv6_listener_leaves_the_ipv4_port_free)
{
    int six, four;
    unsigned port;

    listen_socket_parse("[::]:1");
    listen_socket.a.u.in6.sin6_port = 0;
    six = listen_on(&listen_socket.conf);
    ck_assert_int_ne(sockets_option(six, IPPROTO_IPV6, IPV6_V6ONLY), 0);
    port = ntohs(listen_socket.a.u.in6.sin6_port);
    sockets_loopback(&listen_socket.a, port);
    ck_assert_int_eq(sock_listen(&four, &listen_socket.a, &listen_socket.conf), 0);
    close(four);
    close(six);
}

TEST(sock, a_port_in_use_is_told)
{
    int fd = listen_loopback();

    listen_socket_expect_listen(-EADDRINUSE);
    close(fd);
}

TEST(sock, port_in_time_wait_can_be_listened_on)
{
    int fd = listen_loopback(), client = sockets_connect(&listen_socket.a),
        server = accept(fd, NULL, NULL);

    close(server); /* the side that ends first waits: TIME_WAIT is on the listener's port */
    sockets_hear_end(client);
    close(client);
    close(fd);
    ck_assert_int_eq(sock_listen(&fd, &listen_socket.a, &listen_socket.conf), 0);
    close(fd);
}

TEST(sock, reuseport_lets_several_share_a_port)
{
    struct sock_listen_conf share = {.backlog = 16, .reuseport = true};
    int first, second;

    sockets_loopback(&listen_socket.a, 0);
    first = listen_on(&share);
    ck_assert_int_eq(sock_listen(&second, &listen_socket.a, &share), 0);
    close(second);
    close(first);
}

TEST(sock, an_address_of_another_host_is_told)
{
    listen_socket_parse("192.0.2.1:7");
    listen_socket_expect_listen(-EADDRNOTAVAIL);
}

TEST(sock, without_descriptors_no_socket_is_created)
{
    int fd;

    sockets_loopback(&listen_socket.a, 0);
    process_allow_descriptors(0);
    ck_assert_int_eq(sock_listen(&fd, &listen_socket.a, &listen_socket.conf), -EMFILE);
    ck_assert_int_eq(sock_connect(&fd, &listen_socket.a, &connecting), -EMFILE);
    process_allow_any_descriptors();
}

/* ---- inherited sockets ---- */

TEST(sock, an_inherited_socket_keeps_its_queue_and_gets_the_options)
{
    struct sock_listen_conf with = {.backlog = 16, .options = {.nodelay = true}};
    int fd = sockets_listen(&listen_socket.a, 1), early = sockets_connect(&listen_socket.a), late,
        server;

    ck_assert_int_eq(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_eq(sock_inherit(fd, &listen_socket.a, &with), 0);
    ck_assert_int_ne(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_eq(sockets_option(fd, SOL_SOCKET, SO_REUSEPORT), 0);
    late = sockets_connect(&listen_socket.a);
    close(accept(fd, NULL, NULL));
    sockets_hear_end(early);
    server = accept(fd, NULL, NULL);
    ck_assert_int_ne(sockets_option(server, IPPROTO_TCP, TCP_NODELAY), 0);
    close(server);
    close(late);
    close(early);
    close(fd);
}

TEST(sock, an_inherited_socket_loses_the_options_that_are_not_configured)
{
    struct sock_listen_conf with = {.backlog = 16,
                                    .options = {.keepalive = {.idle_s = 7, .count = 3},
                                                .nodelay = true,
                                                .receive_buffer_bytes = 8192}};
    int fd, plain = socket(AF_INET, SOCK_STREAM, 0);

    sockets_loopback(&listen_socket.a, 0);
    fd = listen_on(&with);
    ck_assert_int_eq(sock_inherit(fd, &listen_socket.a, &listen_socket.conf), 0);
    ck_assert_int_eq(sockets_option(fd, IPPROTO_TCP, TCP_NODELAY), 0);
    ck_assert_int_eq(sockets_option(fd, SOL_SOCKET, SO_KEEPALIVE), 0);
    ck_assert_int_eq(sockets_option(fd, IPPROTO_TCP, TCP_KEEPCNT),
                     sockets_option(plain, IPPROTO_TCP, TCP_KEEPCNT));
    ck_assert_int_eq(sockets_option(fd, SOL_SOCKET, SO_RCVBUF),
                     sockets_option(plain, SOL_SOCKET, SO_RCVBUF));
    close(plain);
    close(fd);
}

TEST(sock, an_inherited_socket_gets_the_backlog)
{
    struct sock_listen_conf with = {.backlog = 16};
    int filler, fd = sockets_listen_deaf(&listen_socket.a, &filler), clients[10];

    ck_assert_int_eq(sock_inherit(fd, &listen_socket.a, &with), 0);
    for (int i = 0; i < 10; i++)
        clients[i] = sockets_connect(&listen_socket.a);
    for (int i = 0; i < 10; i++)
        close(clients[i]);
    close(filler);
    close(fd);
}

TEST(sock, an_inherited_socket_can_share_its_port)
{
    struct sock_listen_conf with = {.backlog = 16, .reuseport = true};
    int fd = listen_loopback(), second;

    ck_assert_int_eq(sock_inherit(fd, &listen_socket.a, &with), 0);
    ck_assert_int_eq(sock_listen(&second, &listen_socket.a, &with), 0);
    close(second);
    close(fd);
}

TEST(sock, inheriting_a_closed_descriptor_fails)
{
    ck_assert_int_eq(sock_inherit(-1, &listen_socket.a, &listen_socket.conf), -EBADF);
}

/* ---- connecting ---- */

static int connect_and_wait(void)
{
    struct timeval limit = {.tv_sec = 5};
    fd_set set;
    int fd, rc = sock_connect(&fd, &listen_socket.a, &connecting);

    ck_assert(rc == 0 || rc == -EINPROGRESS);
    FD_ZERO(&set);
    FD_SET(fd, &set);
    ck_assert_int_eq(select(fd + 1, NULL, &set, NULL, &limit), 1);
    return fd;
}

TEST(sock, a_connection_is_made)
{
    int listening = listen_loopback(), fd;

    connecting.options.nodelay = true;
    fd = connect_and_wait();
    ck_assert_int_eq(sock_error(fd), 0);
    ck_assert(!sock_is_self_connected(fd, &listen_socket.a, &connecting));
    ck_assert_int_ne(sockets_option(fd, IPPROTO_TCP, TCP_NODELAY), 0);
    ck_assert_int_ne(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    close(fd);
    close(listening);
}

TEST(sock, figures_of_tcp_are_measured_and_unix_has_none)
{
    struct tcp_figures figures;
    int ours, theirs;

    sockets_tcp(&ours, &theirs);
    sockets_say(ours, "x");
    sockets_hear(theirs, "x");
    ck_assert(tcp_figures_read(&figures, ours));
    ck_assert_uint_gt(figures.rtt_us, 0);
    ck_assert_uint_eq(figures.retransmits, 0);
    UNTIL(tcp_figures_read(&figures, ours) && figures.delivery_rate > 0);
    ck_assert(tcp_figures_read(&figures, theirs));
    ck_assert_uint_gt(figures.rtt_us, 0);
    close(ours);
    close(theirs);
    sockets_unix(&ours, &theirs);
    ck_assert(!tcp_figures_read(&figures, ours));
    close(ours);
    close(theirs);
}

TEST(sock, a_refused_connection_is_told_once)
{
    int bound = sockets_bound(&listen_socket.a), fd = connect_and_wait();

    ck_assert_int_eq(sock_error(fd), -ECONNREFUSED);
    ck_assert_int_eq(sock_error(fd), 0); /* it was cleared */
    close(fd);
    close(bound);
}

TEST(sock, an_unreachable_unix_socket_is_told_at_once)
{
    int fd;

    sockets_path(&listen_socket.a, "none");
    ck_assert_int_eq(sock_connect(&fd, &listen_socket.a, &connecting), -ENOENT);
}

TEST(sock, a_full_unix_backlog_says_try_again)
{
    struct sock_listen_conf narrow = {.backlog = 0};
    int listening, first, second;

    sockets_path(&listen_socket.a, "sock");
    ck_assert_int_eq(sock_listen(&listening, &listen_socket.a, &narrow), 0);
    ck_assert_int_eq(sock_connect(&first, &listen_socket.a, &connecting), 0);
    ck_assert_int_eq(sock_connect(&second, &listen_socket.a, &connecting), -EAGAIN);
    close(first);
    close(listening);
    sock_unlink(&listen_socket.a);
}

/*
 * Connect to ${a}, where ${listening} listens, and see that it came from ${source}, from a port it
 * got by connecting.
 */
static void expect_source(int listening, const struct address *source)
{
    struct address peer = {.len = sizeof(peer.u)};
    int fd = connect_and_wait(), server = accept(listening, &peer.u.sa, &peer.len);
    in_port_t *port = peer.u.sa.sa_family == AF_INET6 ? &peer.u.in6.sin6_port : &peer.u.in.sin_port;

    ck_assert_int_eq(sock_error(fd), 0);
    ck_assert_int_ne(sockets_option(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT), 0);
    ck_assert_uint_ne(*port, 0);
    *port = 0;
    ck_assert(address_equal(&peer, source));
    close(server);
    close(fd);
    close(listening);
}

TEST(sock, connection_is_made_from_the_source_address_of_its_family)
{
    struct address *ipv4 = add_source(), *ipv6 = add_source();
    int listening;

    sockets_loopback(ipv4, 0);
    ipv4->u.in.sin_addr.s_addr = htonl(0x7f000203);
    listen_socket_parse("[::1]:1");
    *ipv6 = listen_socket.a;
    ipv6->u.in6.sin6_port = listen_socket.a.u.in6.sin6_port = 0;
    listening = listen_on(&listen_socket.conf);
    expect_source(listening, ipv6);
    expect_source(listen_loopback(), ipv4);
}

TEST(sock, source_address_is_ignored_for_other_families)
{
    int listening, fd;

    sockets_loopback(add_source(), 0);
    listen_socket_parse("[::1]:1");
    listen_socket.a.u.in6.sin6_port = 0;
    listening = listen_on(&listen_socket.conf);
    fd = connect_and_wait();
    ck_assert_int_eq(sock_error(fd), 0);
    ck_assert_int_eq(sockets_option(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT), 0);
    close(fd);
    close(listening);
    sockets_path(&listen_socket.a, "sock");
    ck_assert_int_eq(sock_listen(&listening, &listen_socket.a, &listen_socket.conf), 0);
    ck_assert_int_eq(sock_connect(&fd, &listen_socket.a, &connecting), 0);
    close(fd);
    close(listening);
    sock_unlink(&listen_socket.a);
}

TEST(sock, several_sources_are_used_in_turn_and_one_of_another_host_is_passed_over)
{
    struct address *sources[] = {add_source(), add_source(), add_source()};
    int listening;

    for (unsigned i = 0; i < ARRAY_LEN(sources); i++) {
        sockets_loopback(sources[i], 0);
        sources[i]->u.in.sin_addr.s_addr = htonl(0x7f000203 + i);
    }
    sources[1]->u.in.sin_addr.s_addr = htonl(0xc0000201); /* TEST-NET-1 */
    for (unsigned i = 0; i < 2; i++) {
        listening = listen_loopback();
        expect_source(listening, sources[0]);
        listening = listen_loopback();
        expect_source(listening, sources[2]);
        atomic_store(&from.sources.turn, 3);
    }
}

TEST(sock, sources_are_the_same_if_all_addresses_are)
{
    static union {
        struct sock_sources sources;
        uint8_t bytes[sizeof(struct sock_sources) + 4 * sizeof(struct address)];
    } other;

    sockets_loopback(add_source(), 0);
    memcpy(&other, &from, sizeof(other));
    ck_assert(sock_sources_same(NULL, NULL));
    ck_assert(!sock_sources_same(&from.sources, NULL));
    ck_assert(sock_sources_same(&from.sources, &other.sources));
    other.sources.list[0].u.in.sin_addr.s_addr ^= 1;
    ck_assert(!sock_sources_same(&from.sources, &other.sources));
}

TEST(sock, a_source_of_another_host_is_told)
{
    int fd;

    listen_socket_parse("192.0.2.1:1");
    listen_socket.a.u.in.sin_port = 0;
    *add_source() = listen_socket.a;
    sockets_loopback(&listen_socket.a, 7);
    ck_assert_int_eq(sock_connect(&fd, &listen_socket.a, &connecting), -SOCK_NO_SOURCE);
    ck_assert_str_eq(sock_error_text(-SOCK_NO_SOURCE),
                     "source_address is not an address of this host");
    ck_assert_str_eq(sock_error_text(-EPIPE), "Broken pipe");
}

TEST(sock, a_socket_connected_to_itself_is_found_out)
{
    int fd = sockets_bound(&listen_socket.a);

    ck_assert_int_eq(connect(fd, &listen_socket.a.u.sa, listen_socket.a.len), 0);
    ck_assert(sock_is_self_connected(fd, &listen_socket.a, &connecting));
    close(fd);
}

TEST(sock, a_unix_socket_is_never_connected_to_itself)
{
    int fd, client;

    sockets_path(&listen_socket.a, "sock");
    ck_assert_int_eq(sock_listen(&fd, &listen_socket.a, &listen_socket.conf), 0);
    client = sockets_connect(&listen_socket.a);
    ck_assert(!sock_is_self_connected(client, &listen_socket.a, &connecting));
    close(client);
    close(fd);
    sock_unlink(&listen_socket.a);
}

TEST(sock, a_hidden_socket_refuses_clients_and_keeps_its_queue)
{
    int fd = sockets_listen(&listen_socket.a, 5), client = sockets_connect(&listen_socket.a), late,
        served;

    sock_hide(fd);
    late = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(late, &listen_socket.a.u.sa, listen_socket.a.len), -1);
    ck_assert_int_eq(errno, ECONNREFUSED);
    served = sockets_accept(fd);
    sockets_say(served, "hello");
    sockets_hear(client, "hello");
    close(served);
    close(late);
    close(client);
    close(fd);
}
