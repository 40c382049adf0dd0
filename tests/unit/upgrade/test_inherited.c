/* upgrade/inherited: which descriptors of the service manager are usable listen sockets. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "upgrade/inherited.h"
#include "net/sock.h"
#include "support/fault.h"
#include "support/handed.h"
#include "support/log_lines.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"

static const struct sock_listen_conf conf = {.backlog = 4};
static struct inherited_socket *sockets;
static struct address a;
static unsigned before, n;

static void setup(void)
{
    handed_open();
    before = process_descriptors();
    log_lines_capture(LOG_LEVEL_DEBUG);
}

static void teardown(void)
{
    inherited_free(sockets, n);
    ck_assert_uint_eq(process_descriptors(), before);
    ck_assert_ptr_null(getenv("LISTEN_FDS"));
}

static void read_all(void)
{
    n = 9; /* is set, whatever it was */
    ck_assert_int_eq(inherited_read(&sockets, &n), 0);
}

static int listen_on(const char *text)
{
    int fd;

    a = sockets_address(text);
    ck_assert_int_eq(sock_listen(&fd, &a, &conf), 0);
    return fd;
}

static void expect_closed(const char *line)
{
    read_all();
    ck_assert_uint_eq(n, 1);
    ck_assert_int_eq(sockets[0].fd, -1);
    ck_assert_uint_eq(process_descriptors(), before);
    EXPECT_LOG_LINES(line, 1);
}

GROUP(inherited, setup, teardown);

TEST(inherited, without_a_service_manager_none_are_inherited)
{
    read_all();
    ck_assert_uint_eq(n, 0);
}

TEST(inherited, inherited_socket_has_its_address_and_name_and_is_close_on_exec)
{
    int fd = handed_add(sockets_listen(&a, 4), "web");

    handed_add(listen_on("@reactord-test-inherited"), "other");
    read_all();
    ck_assert_uint_eq(n, 2);
    ck_assert_int_eq(sockets[0].fd, fd);
    ck_assert_str_eq(sockets[0].name, "web");
    ck_assert_str_eq(sockets[1].name, "other");
    ck_assert(address_equal(&sockets[1].address, &a));
    ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    ck_assert_str_eq(log_lines_last(), "");
}

TEST(inherited, descriptors_of_another_process_are_left_alone)
{
    int fd = handed_add(sockets_listen(&a, 4), "web");

    ck_assert_int_eq(setenv("LISTEN_PID", "1", 1), 0);
    read_all();
    ck_assert_uint_eq(n, 0);
    ck_assert_int_eq(close(fd), 0);
}

static const char *const bad_counts[] = {"", "x", "-1", "3x"};

TEST_EACH(inherited, invalid_count_is_reported, ARRAY_LEN(bad_counts))
{
    int fd = handed_add(sockets_listen(&a, 4), "web");

    ck_assert_int_eq(setenv("LISTEN_FDS", bad_counts[_i], 1), 0);
    read_all();
    ck_assert_uint_eq(n, 0);
    EXPECT_LOG_LINES("cannot read LISTEN_FDS and LISTEN_FDNAMES: ", 1);
    close(fd);
}

TEST(inherited, more_names_than_descriptors_are_reported)
{
    int fd = handed_add(sockets_listen(&a, 4), "one:two");

    read_all();
    EXPECT_LOG_LINES("cannot read LISTEN_FDS and LISTEN_FDNAMES: ", 1);
    close(fd);
}

TEST(inherited, descriptor_that_does_not_listen_is_closed)
{
    handed_add(sockets_bound(&a), "web");
    expect_closed("inherited descriptor 3 (web): is not a listening stream socket; closed");
}

TEST(inherited, descriptor_that_is_no_socket_is_closed)
{
    handed_add(open("/dev/null", O_RDONLY), "null");
    expect_closed("inherited descriptor 3 (null): is not a listening stream socket; closed");
}

TEST(inherited, a_datagram_socket_is_closed)
{
    handed_add(socket(AF_INET, SOCK_DGRAM, 0), "dns");
    expect_closed("inherited descriptor 3 (dns): is not a listening stream socket; closed");
}

TEST(inherited, a_socket_of_packets_is_closed)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

    a = sockets_address("@reactord-test-packets");
    ck_assert_int_eq(bind(fd, &a.u.sa, a.len), 0);
    ck_assert_int_eq(listen(fd, 4), 0);
    handed_add(fd, "packets");
    expect_closed("inherited descriptor 3 (packets): is not a listening stream socket; closed");
}

/* Our own [::]:port is for IPv6 alone, and another one of ours has 0.0.0.0:port. */
TEST(inherited, a_wildcard_socket_of_both_families_is_closed)
{
    struct sockaddr_in6 any = {.sin6_family = AF_INET6};
    int fd = socket(AF_INET6, SOCK_STREAM, 0), off = 0;

    ck_assert_int_eq(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)), 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
    ck_assert_int_eq(listen(fd, 4), 0);
    handed_add(fd, "web");
    expect_closed(" (web): takes IPv4 clients too; set BindIPv6Only=ipv6-only in its .socket unit; "
                  "closed");
}

TEST(inherited, wildcard_socket_of_ipv6_only_is_taken)
{
    int on = 1, fd = socket(AF_INET6, SOCK_STREAM, 0);

    ck_assert_int_eq(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)), 0);
    ck_assert_int_eq(listen(fd, 4), 0); /* binds to any port */
    fd = handed_add(fd, "web");
    read_all();
    ck_assert_int_eq(sockets[0].fd, fd);
}

TEST(inherited, unix_socket_with_a_missing_file_is_closed)
{
    int fd;

    sockets_path(&a, "inherited");
    ck_assert_int_eq(sock_listen(&fd, &a, &conf), 0);
    handed_add(fd, "web");
    sock_unlink(&a);
    expect_closed(" (web): its file is gone; closed");
}

TEST(inherited, unix_socket_replaced_by_another_file_is_closed)
{
    int fd;

    sockets_path(&a, "inherited");
    ck_assert_int_eq(sock_listen(&fd, &a, &conf), 0);
    handed_add(fd, "web");
    sock_unlink(&a);
    close(open(a.u.un.sun_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    expect_closed(" (web): its file is gone; closed");
    sock_unlink(&a);
}

TEST(inherited, unix_socket_with_its_file_is_taken)
{
    int fd;

    sockets_path(&a, "inherited");
    ck_assert_int_eq(sock_listen(&fd, &a, &conf), 0);
    fd = handed_add(fd, "web");
    read_all();
    ck_assert_int_eq(sockets[0].fd, fd);
    ck_assert(address_equal(&sockets[0].address, &a));
    sock_unlink(&a);
}

TEST(inherited, socket_passed_twice_is_taken_once)
{
    int fd = handed_add(sockets_listen(&a, 4), "unit");

    handed_add(dup(fd), "store");
    read_all();
    ck_assert_uint_eq(n, 2);
    ck_assert_int_eq(sockets[0].fd, fd);
    ck_assert_int_eq(sockets[1].fd, -1);
}

TEST(inherited, reading_without_memory_fails)
{
    int fd = handed_add(sockets_listen(&a, 4), "web");

    fault_plan(FAULT_MEMORY, 0, 1, ENOMEM);
    ck_assert_int_eq(inherited_read(&sockets, &n), -ENOMEM);
    ck_assert_uint_eq(n, 0);
    ck_assert_ptr_null(sockets);
    close(fd);
}

TEST(inherited, descriptors_of_an_upgrade_are_left_alone)
{
    int fd = handed_add(open("/dev/null", O_RDONLY), "reactord-state");

    read_all();
    ck_assert_uint_eq(n, 1);
    ck_assert_int_eq(sockets[0].fd, -1);
    ck_assert_int_ge(fcntl(fd, F_GETFD), 0);
    ck_assert_uint_eq(log_lines_with("inherited"), 0);
    close(fd);
}
