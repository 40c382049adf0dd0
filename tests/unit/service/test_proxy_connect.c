/*
 * service/proxy, until there is a server: which one is tried, which next, and what the client sees
 * of it.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "support/log_lines.h"
#include "support/process.h"
#include "support/proxied.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

/* A server that refused listens from now on. */
static void come_back(unsigned i)
{
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    close(proxied.fds[i]);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
    ck_assert_int_eq(bind(fd, &proxied.addresses[i].u.sa, proxied.addresses[i].len), 0);
    ck_assert_int_eq(listen(fd, 16), 0);
    proxied.fds[i] = fd;
}

GROUP(connect, proxied_enter, proxied_leave);

TEST(connect, servers_take_turns)
{
    for (unsigned i = 0; i < 3; i++)
        proxied_add(i, PROXIED_ANSWERS);
    proxied_open(3);
    for (unsigned i = 0; i < 6; i++)
        proxied_expect_served_by(i % 3);
}

/* The first two of three servers, and as many retries as are needed: a name counts as none. */
static const struct {
    enum proxied_server first, second;
    unsigned retries;
} no_use[] = {{PROXIED_REFUSES, PROXIED_REFUSES, 2},
              {PROXIED_UNKNOWN, PROXIED_REFUSES, 1},
              {PROXIED_UNKNOWN, PROXIED_UNKNOWN, 0}};

TEST_EACH(connect, refusing_or_unresolved_server_is_followed_by_the_next, ARRAY_LEN(no_use))
{
    proxied_add(0, no_use[_i].first);
    proxied_add(1, no_use[_i].second);
    proxied_add(2, PROXIED_ANSWERS);
    proxied.conf.retries = no_use[_i].retries;
    proxied_open(3);
    for (int i = 0; i < 6; i++)
        proxied_expect_served_by(2);
    if (no_use[_i].retries == 0) /* the resolver has told of it */
        ck_assert_uint_eq(log_lines_with("upstream"), 0);
}

TEST(connect, a_backup_is_tried_only_after_the_others)
{
    proxied_add(0, PROXIED_ANSWERS);
    proxied_add(1, PROXIED_REFUSES);
    proxied_add(2, PROXIED_ANSWERS);
    proxied.servers[0].backup = true;
    proxied_open(3);
    for (int i = 0; i < 4; i++)
        proxied_expect_served_by(2);
    close(proxied.fds[2]);
    proxied.fds[2] = -1;
    for (int i = 0; i < 4; i++)
        proxied_expect_served_by(0);
}

TEST(connect, no_more_servers_are_tried_than_retries_say)
{
    proxied_add(0, PROXIED_REFUSES);
    proxied_add(1, PROXIED_REFUSES);
    proxied_add(2, PROXIED_ANSWERS);
    proxied.conf.balance = BALANCER_FIRST;
    proxied.conf.retries = 1;
    proxied_open(3);
    for (int i = 0; i < 3; i++)
        proxied_expect_reset(SESSION_CONNECT_REFUSED); /* a, then b */
    ck_assert_uint_eq(log_lines_with("server c"), 0);
}

TEST(connect, without_retries_the_first_failure_is_the_end)
{
    proxied_add(0, PROXIED_REFUSES);
    proxied_add(1, PROXIED_ANSWERS);
    proxied.conf.retries = 0;
    proxied_open(2);
    proxied_expect_reset(SESSION_CONNECT_REFUSED);
    proxied_expect_served_by(1);
}

TEST(connect, client_is_reset_at_once_when_every_server_refuses)
{
    int64_t began_at_ns = clock_now_ns();

    for (unsigned i = 0; i < 3; i++)
        proxied_add(i, PROXIED_REFUSES);
    proxied_open(3);
    proxied_expect_reset(SESSION_CONNECT_REFUSED);
    ck_assert_int_lt(since_ms(began_at_ns), 500);
}

/* ---- pauses ---- */

/* 0: a group of one; 1: three, all of which are away. */
TEST_EACH(connect, client_waits_for_a_server_to_accept_again, 2)
{
    unsigned n = _i == 0 ? 1 : 3;
    int client, server;

    for (unsigned i = 0; i < n; i++)
        proxied_add(i, PROXIED_REFUSES);
    proxied.conf.retry_budget = 100;
    proxied.conf.retry_timeout_ns = 60 * NS_PER_S;
    proxied_open(n);
    client = host_client(&proxied.host);
    UNTIL(log_lines_with("cannot connect") >= n);
    UNTIL(atomic_load(&proxied.upstream->retry_budget.retries) >= 1);
    sockets_hear_nothing(client);
    come_back(n - 1);
    server = sockets_accept(proxied.fds[n - 1]);
    sockets_say(client, "x");
    sockets_hear(server, "x");
    close(client);
    close(server);
}

/* 0: retry_timeout; 1: without it, connect_timeout. */
TEST_EACH(connect, client_waits_no_longer_than_the_retry_timeout, 2)
{
    int64_t began_at_ns = clock_now_ns();

    proxied_add(0, PROXIED_REFUSES);
    proxied.conf.retry_budget = 100;
    proxied.conf.connect_timeout_ns = (_i == 0 ? 30000 : 400) * NS_PER_MS;
    proxied.conf.retry_timeout_ns = (_i == 0 ? 400 : 0) * NS_PER_MS;
    proxied_open(1);
    proxied_expect_reset(SESSION_CONNECT_REFUSED);
    ck_assert_uint_ge(atomic_load(&proxied.upstream->retry_budget.retries), 1);
    ck_assert_int_lt(since_ms(began_at_ns), 20000);
}

/* 0: no retries at all; 1: no budget. */
TEST_EACH(connect, without_retries_or_a_budget_there_is_no_pause, 2)
{
    proxied_add(0, PROXIED_REFUSES);
    proxied.conf.retries = _i == 0 ? 0 : 3;
    proxied.conf.retry_budget = _i == 0 ? 100 : 0;
    proxied.conf.connect_timeout_ns = proxied.conf.retry_timeout_ns = 3600 * NS_PER_S;
    proxied_open(1);
    proxied_expect_reset(SESSION_CONNECT_REFUSED);
    ck_assert_uint_eq(atomic_load(&proxied.upstream->retry_budget.retries), 0);
}

/* A client whose server refuses, behind ${n} pauses; it is given up only after an hour. */
static int client_behind_pauses(unsigned n)
{
    int client;

    proxied_add(0, PROXIED_REFUSES);
    proxied.conf.retry_budget = 100;
    proxied.conf.retry_timeout_ns = 3600 * NS_PER_S;
    proxied_open(1);
    client = host_client(&proxied.host);
    UNTIL(atomic_load(&proxied.upstream->retry_budget.retries) >= n);
    return client;
}

TEST(connect, reset_of_the_client_ends_the_pause)
{
    sockets_reset(client_behind_pauses(4)); /* they are long by now */
    host_expect_end(&proxied.host, SESSION_CLIENT_RESET);
}

TEST(connect, each_pause_is_twice_as_long_as_the_last)
{
    int64_t began_at_ns = clock_now_ns();
    int client = client_behind_pauses(5);

    /* Half of 50, 100, 200, 400 and 800 ms at least; five times 50 are at most 375. */
    ck_assert_int_ge(since_ms(began_at_ns), 775);
    sockets_reset(client);
    host_expect_end(&proxied.host, SESSION_CLIENT_RESET);
}

TEST(connect, retries_above_the_budget_wait_and_are_counted)
{
    int clients[30];

    proxied_add(0, PROXIED_REFUSES);
    proxied.conf.retry_budget = 1;
    proxied.conf.retry_timeout_ns = 3600 * NS_PER_S;
    proxied_open(1);
    for (unsigned i = 0; i < 30; i++)
        clients[i] = host_client(&proxied.host);
    UNTIL(atomic_load(&proxied.upstream->retry_budget.refused) >= 1);
    come_back(0);
    for (unsigned i = 0; i < 30; i++)
        close(sockets_accept(proxied.fds[0])); /* all are served in the end */
    for (unsigned i = 0; i < 30; i++)
        close(clients[i]);
}

TEST(connect, each_address_of_a_server_is_tried)
{
    proxied_add(0, PROXIED_REFUSES);
    proxied.fds[1] = sockets_listen(&proxied.addresses[1], 16);
    proxied.servers[0].n_addresses = 2;
    proxied_open(1);
    proxied_expect_served_by(1);
}

TEST(connect, server_on_a_unix_socket_serves_clients)
{
    proxied_add(0, PROXIED_ANSWERS);
    close(proxied.fds[0]);
    sockets_path(&proxied.addresses[0], "server");
    proxied.fds[0] = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(proxied.fds[0], &proxied.addresses[0].u.sa, proxied.addresses[0].len), 0);
    ck_assert_int_eq(listen(proxied.fds[0], 5), 0);
    proxied_open(1);
    proxied_expect_served_by(0);
    unlink(proxied.addresses[0].u.un.sun_path);
}

TEST(connect, failures_are_logged_once_a_second_and_server)
{
    proxied_add(0, PROXIED_REFUSES);
    proxied_add(1, PROXIED_REFUSES);
    proxied_open(2);
    for (int i = 0; i < 20; i++)
        proxied_expect_reset(SESSION_CONNECT_REFUSED);
    ck_assert_uint_ge(log_lines_with("server a (there)"), 1);
    ck_assert_uint_ge(log_lines_with("server b (there)"), 1);
    ck_assert_uint_le(log_lines_with("upstream back: server"), 4);
    ck_assert_uint_ge(log_lines_with("Connection refused"), 2);
}

/* ---- names ---- */

TEST(connect, client_is_reset_at_once_when_no_name_is_resolved)
{
    int64_t began_at_ns = clock_now_ns();

    for (unsigned i = 0; i < 3; i++)
        proxied_add(i, PROXIED_UNKNOWN);
    proxied_open(3);
    for (int i = 0; i < 20; i++)
        proxied_expect_reset(SESSION_NO_SERVER);
    ck_assert_int_lt(since_ms(began_at_ns), 5000);
    ck_assert_uint_ge(log_lines_with("upstream back: no server is available; the client is reset"),
                      1);
    ck_assert_uint_le(log_lines_with("no server is available"),
                      1 + (unsigned)since_ms(began_at_ns) / 1000);
}

/* Two new clients are served by one server each of the first two. */
static void expect_served_by_both(void)
{
    int client[2], server[2];

    for (unsigned i = 0; i < 2; i++)
        client[i] = host_client(&proxied.host);
    for (unsigned i = 0; i < 2; i++)
        server[i] = sockets_accept(proxied.fds[i]);
    for (unsigned i = 0; i < 2; i++) {
        close(client[i]);
        close(server[i]);
    }
}

TEST(connect, server_gets_clients_as_soon_as_its_name_is_resolved)
{
    proxied_add(0, PROXIED_UNKNOWN);
    proxied_add(1, PROXIED_ANSWERS);
    proxied_open(2);
    proxied_expect_served_by(1);
    proxied_expect_served_by(1);
    ck_assert_int_eq(
        upstream_set_addresses(proxied.upstream, proxied_state(0), &proxied.addresses[0], 1), 1);
    expect_served_by_both();
}

TEST(connect, lack_of_descriptors_is_not_blamed_on_a_server)
{
    int ours, client;

    for (unsigned i = 0; i < 2; i++)
        proxied_add(i, PROXIED_ANSWERS);
    proxied_open(2);
    sockets_tcp(&ours, &client);
    process_allow_descriptors(0);
    host_adopt(&proxied.host, ours);
    sockets_hear_reset(client);
    host_expect_end(&proxied.host, SESSION_ERROR);
    process_allow_any_descriptors();
    ck_assert_uint_eq(log_lines_with("server b"), 0);
    close(client);
}
