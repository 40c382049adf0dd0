/* net/sock: options are set, errors are told apart, and a descriptor that failed is closed. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/sock.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"

static const struct sock_listen_conf conf = {.backlog = 16};
static struct sock_connect_conf connecting;
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

/* Listen on ${a}, and learn the port the kernel chose. */
static int listen_on(const struct sock_listen_conf *with)
{
    int fd;

    ck_assert_int_eq(sock_listen(&fd, &a, with), 0);
    ck_assert_int_eq(getsockname(fd, &a.u.sa, &a.len), 0);
    return fd;
}

static int listen_loopback(void)
{
    sockets_loopback(&a, 0);
    return listen_on(&conf);
}

static void expect_listen(int error)
{
    int fd;

    ck_assert_int_eq(sock_listen(&fd, &a, &conf), error);
}

static void parse(const char *word)
{
    struct address both[2];

    ck_assert_int_eq(address_parse(both, 2, word), 1);
    a = both[0];
}

GROUP(sock, setup, teardown);

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

    sockets_loopback(&a, 0);
    fd = listen_on(&with);
    client = sockets_connect(&a);
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

    parse("[::]:1");
    a.u.in6.sin6_port = 0;
    six = listen_on(&conf);
    ck_assert_int_ne(sockets_option(six, IPPROTO_IPV6, IPV6_V6ONLY), 0);
    port = ntohs(a.u.in6.sin6_port);
    sockets_loopback(&a, port);
    ck_assert_int_eq(sock_listen(&four, &a, &conf), 0);
    close(four);
    close(six);
}

TEST(sock, a_port_in_use_is_told)
{
    int fd = listen_loopback();

    expect_listen(-EADDRINUSE);
    close(fd);
}

TEST(sock, port_in_time_wait_can_be_listened_on)
{
    int fd = listen_loopback(), client = sockets_connect(&a), server = accept(fd, NULL, NULL);

    close(server); /* the side that ends first waits: TIME_WAIT is on the listener's port */
    sockets_hear_end(client);
    close(client);
    close(fd);
    ck_assert_int_eq(sock_listen(&fd, &a, &conf), 0);
    close(fd);
}

TEST(sock, reuseport_lets_several_share_a_port)
{
    struct sock_listen_conf share = {.backlog = 16, .reuseport = true};
    int first, second;

    sockets_loopback(&a, 0);
    first = listen_on(&share);
    ck_assert_int_eq(sock_listen(&second, &a, &share), 0);
    close(second);
    close(first);
}

TEST(sock, an_address_of_another_host_is_told)
{
    parse("192.0.2.1:7");
    expect_listen(-EADDRNOTAVAIL);
}

TEST(sock, without_descriptors_no_socket_is_created)
{
    int fd;

    sockets_loopback(&a, 0);
    process_allow_descriptors(0);
    ck_assert_int_eq(sock_listen(&fd, &a, &conf), -EMFILE);
    ck_assert_int_eq(sock_connect(&fd, &a, &connecting), -EMFILE);
    process_allow_any_descriptors();
}

/* ---- inherited sockets ---- */

TEST(sock, an_inherited_socket_keeps_its_queue_and_gets_the_options)
{
    struct sock_listen_conf with = {.backlog = 16, .options = {.nodelay = true}};
    int fd = sockets_listen(&a, 1), early = sockets_connect(&a), late, server;

    ck_assert_int_eq(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_eq(sock_inherit(fd, &a, &with), 0);
    ck_assert_int_ne(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_eq(sockets_option(fd, SOL_SOCKET, SO_REUSEPORT), 0);
    late = sockets_connect(&a);
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

    sockets_loopback(&a, 0);
    fd = listen_on(&with);
    ck_assert_int_eq(sock_inherit(fd, &a, &conf), 0);
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
    int filler, fd = sockets_listen_deaf(&a, &filler), clients[10];

    ck_assert_int_eq(sock_inherit(fd, &a, &with), 0);
    for (int i = 0; i < 10; i++)
        clients[i] = sockets_connect(&a);
    for (int i = 0; i < 10; i++)
        close(clients[i]);
    close(filler);
    close(fd);
}

TEST(sock, an_inherited_socket_can_share_its_port)
{
    struct sock_listen_conf with = {.backlog = 16, .reuseport = true};
    int fd = listen_loopback(), second;

    ck_assert_int_eq(sock_inherit(fd, &a, &with), 0);
    ck_assert_int_eq(sock_listen(&second, &a, &with), 0);
    close(second);
    close(fd);
}

TEST(sock, inheriting_a_closed_descriptor_fails)
{
    ck_assert_int_eq(sock_inherit(-1, &a, &conf), -EBADF);
}

TEST(sock, an_inherited_unix_socket_is_given_to_its_user_and_group)
{
    struct sock_listen_conf with = conf;
    struct stat st;
    int fd;

    sockets_path(&a, "sock");
    ck_assert_int_eq(sock_listen(&fd, &a, &with), 0);
    with.file = (struct sock_file){.set_mode = true, .mode = 0640};
    ck_assert_int_eq(sock_inherit(fd, &a, &with), 0);
    ck_assert_int_eq(stat(a.u.un.sun_path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0640);
    close(fd);
    sock_unlink(&a);
}

/* Only root or its owner may change it. */
TEST(sock, file_of_another_user_is_accepted_only_with_the_configured_mode_and_owner)
{
    struct sock_listen_conf with = conf;
    int fd;

    if (geteuid() != 0)
        return;
    sockets_path(&a, "sock");
    with.file = (struct sock_file){.set_mode = true, .set_uid = true, .mode = 0660};
    ck_assert_int_eq(sock_listen(&fd, &a, &with), 0);
    ck_assert_int_eq(seteuid(65534), 0);
    ck_assert_int_eq(sock_inherit(fd, &a, &with), 0);
    with.file.mode = 0666;
    ck_assert_int_eq(sock_inherit(fd, &a, &with), -EPERM);
    with.file = (struct sock_file){.set_uid = true, .uid = 65534};
    ck_assert_int_eq(sock_inherit(fd, &a, &with), -EPERM);
    ck_assert_int_eq(seteuid(0), 0);
    close(fd);
    sock_unlink(&a);
}

/* ---- unix sockets ---- */

TEST(sock, unix_socket_has_a_file_until_it_is_unlinked)
{
    int fd;
    struct stat st;

    sockets_path(&a, "sock");
    ck_assert_int_eq(sock_listen(&fd, &a, &conf), 0);
    ck_assert_int_eq(lstat(a.u.un.sun_path, &st), 0);
    ck_assert(S_ISSOCK(st.st_mode));
    close(sockets_connect(&a));
    close(fd);
    sock_unlink(&a);
    ck_assert_int_eq(lstat(a.u.un.sun_path, &st), -1);
    sock_unlink(&a);
}

/* With any umask. */
TEST(sock, a_unix_socket_is_given_to_its_user_and_group)
{
    static const mode_t umasks[] = {0, 022, 077, 0777};
    struct sock_listen_conf with = conf;
    mode_t usual = umask(0);
    struct stat st;
    int fd;

    parse("/tmp/reactord-test-sock-file");
    with.file = (struct sock_file){.set_mode = true, .mode = 0660};
    if (geteuid() == 0) {
        with.file.set_uid = with.file.set_gid = true;
        with.file.uid = 1234;
        with.file.gid = 4321;
    }
    for (size_t i = 0; i < ARRAY_LEN(umasks); i++) {
        umask(umasks[i]);
        ck_assert_int_eq(sock_listen(&fd, &a, &with), 0);
        ck_assert_int_eq(stat(a.u.un.sun_path, &st), 0);
        ck_assert_uint_eq(st.st_mode, S_IFSOCK | 0660);
        ck_assert(geteuid() != 0 || (st.st_uid == 1234 && st.st_gid == 4321));
        close(fd);
        sock_unlink(&a);
    }
    umask(usual);
}

/* The socket has the mode before there is a file: at no moment may more connect. */
TEST(sock, the_mode_of_a_unix_socket_is_set_before_there_is_a_file)
{
    struct sock_listen_conf with = conf;
    struct stat st;
    int fd;

    sockets_path(&a, "sock");
    with.file = (struct sock_file){.set_mode = true, .mode = 0640};
    ck_assert_int_eq(sock_listen(&fd, &a, &with), 0);
    ck_assert_int_eq(fstat(fd, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0640);
    close(fd);
    sock_unlink(&a);
}

TEST(sock, a_unix_socket_that_cannot_be_given_away_is_not_left)
{
    struct sock_listen_conf with = conf;
    struct stat st;
    int fd;

    if (geteuid() != 0)
        return;
    sockets_path(&a, "sock");
    with.file = (struct sock_file){.set_uid = true, .uid = 0};
    ck_assert_int_eq(seteuid(65534), 0);
    ck_assert_int_eq(sock_listen(&fd, &a, &with), -EPERM);
    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(lstat(a.u.un.sun_path, &st), -1);
}

TEST(sock, stale_unix_socket_file_is_replaced)
{
    int fd;

    sockets_path(&a, "sock");
    ck_assert_int_eq(sock_listen(&fd, &a, &conf), 0);
    close(fd);
    ck_assert_int_eq(sock_listen(&fd, &a, &conf), 0);
    close(sockets_connect(&a));
    close(fd);
    sock_unlink(&a);
}

TEST(sock, a_unix_socket_that_answers_is_in_use)
{
    int fd;

    sockets_path(&a, "sock");
    ck_assert_int_eq(sock_listen(&fd, &a, &conf), 0);
    expect_listen(-EADDRINUSE);
    close(sockets_connect(&a)); /* and still works */
    close(fd);
    sock_unlink(&a);
}

TEST(sock, unix_socket_with_a_full_backlog_is_in_use)
{
    struct sock_listen_conf narrow = {.backlog = 0};
    int fd, client;

    sockets_path(&a, "sock");
    ck_assert_int_eq(sock_listen(&fd, &a, &narrow), 0);
    client = sockets_connect(&a);
    expect_listen(-EADDRINUSE);
    close(client);
    close(fd);
    sock_unlink(&a);
}

TEST(sock, path_of_another_kind_of_file_is_left_alone)
{
    FILE *file;
    struct stat st;

    sockets_path(&a, "file");
    file = fopen(a.u.un.sun_path, "w");
    fclose(file);
    expect_listen(-ENOTSOCK);
    ck_assert_int_eq(lstat(a.u.un.sun_path, &st), 0);
    ck_assert(S_ISREG(st.st_mode));
    ck_assert_int_eq(unlink(a.u.un.sun_path), 0);
}

TEST(sock, path_in_a_missing_directory_is_refused)
{
    sockets_path(&a, "none/sock");
    expect_listen(-ENOENT);
}

TEST(sock, an_abstract_name_needs_no_file)
{
    int fd;

    parse("@reactord-test-sock");
    ck_assert_int_eq(sock_listen(&fd, &a, &conf), 0);
    expect_listen(-EADDRINUSE);
    close(sockets_connect(&a));
    sock_unlink(&a);
    close(fd);
}

/* ---- connecting ---- */

static int connect_and_wait(void)
{
    struct timeval limit = {.tv_sec = 5};
    fd_set set;
    int fd, rc = sock_connect(&fd, &a, &connecting);

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
    ck_assert(!sock_is_self_connected(fd, &a));
    ck_assert_int_ne(sockets_option(fd, IPPROTO_TCP, TCP_NODELAY), 0);
    ck_assert_int_ne(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    close(fd);
    close(listening);
}

TEST(sock, the_round_trip_time_of_tcp_is_measured_and_that_of_unix_is_0)
{
    int ours, theirs;

    sockets_tcp(&ours, &theirs);
    sockets_say(ours, "x");
    sockets_hear(theirs, "x");
    ck_assert_uint_gt(sock_rtt_us(ours), 0);
    ck_assert_uint_gt(sock_rtt_us(theirs), 0);
    close(ours);
    close(theirs);
    sockets_unix(&ours, &theirs);
    ck_assert_uint_eq(sock_rtt_us(ours), 0);
    close(ours);
    close(theirs);
}

TEST(sock, a_refused_connection_is_told_once)
{
    int bound = sockets_bound(&a), fd = connect_and_wait();

    ck_assert_int_eq(sock_error(fd), -ECONNREFUSED);
    ck_assert_int_eq(sock_error(fd), 0); /* it was cleared */
    close(fd);
    close(bound);
}

TEST(sock, an_unreachable_unix_socket_is_told_at_once)
{
    int fd;

    sockets_path(&a, "none");
    ck_assert_int_eq(sock_connect(&fd, &a, &connecting), -ENOENT);
}

TEST(sock, a_full_unix_backlog_says_try_again)
{
    struct sock_listen_conf narrow = {.backlog = 0};
    int listening, first, second;

    sockets_path(&a, "sock");
    ck_assert_int_eq(sock_listen(&listening, &a, &narrow), 0);
    ck_assert_int_eq(sock_connect(&first, &a, &connecting), 0);
    ck_assert_int_eq(sock_connect(&second, &a, &connecting), -EAGAIN);
    close(first);
    close(listening);
    sock_unlink(&a);
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
    int listening;

    sockets_loopback(&connecting.source_ipv4, 0);
    connecting.source_ipv4.u.in.sin_addr.s_addr = htonl(0x7f000203);
    parse("[::1]:1");
    connecting.source_ipv6 = a;
    connecting.source_ipv6.u.in6.sin6_port = a.u.in6.sin6_port = 0;
    listening = listen_on(&conf);
    expect_source(listening, &connecting.source_ipv6);
    expect_source(listen_loopback(), &connecting.source_ipv4);
}

TEST(sock, source_address_is_ignored_for_other_families)
{
    int listening, fd;

    sockets_loopback(&connecting.source_ipv4, 0);
    parse("[::1]:1");
    a.u.in6.sin6_port = 0;
    listening = listen_on(&conf);
    fd = connect_and_wait();
    ck_assert_int_eq(sock_error(fd), 0);
    ck_assert_int_eq(sockets_option(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT), 0);
    close(fd);
    close(listening);
    sockets_path(&a, "sock");
    ck_assert_int_eq(sock_listen(&listening, &a, &conf), 0);
    ck_assert_int_eq(sock_connect(&fd, &a, &connecting), 0);
    close(fd);
    close(listening);
    sock_unlink(&a);
}

TEST(sock, a_source_of_another_host_is_told)
{
    int fd;

    parse("192.0.2.1:1");
    connecting.source_ipv4 = a;
    connecting.source_ipv4.u.in.sin_port = 0;
    sockets_loopback(&a, 7);
    ck_assert_int_eq(sock_connect(&fd, &a, &connecting), -SOCK_NO_SOURCE);
    ck_assert_str_eq(sock_error_text(-SOCK_NO_SOURCE),
                     "source_address is not an address of this host");
    ck_assert_str_eq(sock_error_text(-EPIPE), "Broken pipe");
}

TEST(sock, a_socket_connected_to_itself_is_found_out)
{
    int fd = sockets_bound(&a);

    ck_assert_int_eq(connect(fd, &a.u.sa, a.len), 0);
    ck_assert(sock_is_self_connected(fd, &a));
    close(fd);
}

TEST(sock, a_unix_socket_is_never_connected_to_itself)
{
    int fd, client;

    sockets_path(&a, "sock");
    ck_assert_int_eq(sock_listen(&fd, &a, &conf), 0);
    client = sockets_connect(&a);
    ck_assert(!sock_is_self_connected(client, &a));
    close(client);
    close(fd);
    sock_unlink(&a);
}

TEST(sock, a_hidden_socket_refuses_clients_and_keeps_its_queue)
{
    int fd = sockets_listen(&a, 5), client = sockets_connect(&a), late, served;

    sock_hide(fd);
    late = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(late, &a.u.sa, a.len), -1);
    ck_assert_int_eq(errno, ECONNREFUSED);
    served = sockets_accept(fd);
    sockets_say(served, "hello");
    sockets_hear(client, "hello");
    close(served);
    close(late);
    close(client);
    close(fd);
}
