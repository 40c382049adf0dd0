/*
 * service/proxy, while a client waits: for a server that neither answers nor refuses, and for room
 * at one that has as many connections as it may have.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/fault.h"
#include "support/log_lines.h"
#include "support/proxied.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

/* ---- while connecting ---- */

/* A server whose backlog is full: it neither answers nor refuses. */
static int filler;

static void open_deaf_server(void)
{
    proxied_add(0, PROXIED_ANSWERS);
    ck_assert_int_eq(listen(proxied.fds[0], 0), 0);
    filler = sockets_connect(&proxied.addresses[0]);
}

GROUP(wait, proxied_enter, proxied_leave);

TEST(wait, server_that_does_not_accept_in_time_is_followed_by_the_next)
{
    open_deaf_server();
    proxied_add(1, PROXIED_ANSWERS);
    proxied.conf.connect_timeout_ns = 100 * NS_PER_MS;
    proxied_open(2);
    proxied_expect_served_by(1);
    close(filler);
}

TEST(wait, all_attempts_of_a_session_have_one_deadline)
{
    int64_t began_at_ns = clock_now_ns();

    open_deaf_server();
    proxied_add(1, PROXIED_ANSWERS);
    proxied.conf.balance = BALANCER_FIRST;
    proxied.conf.connect_timeout_ns = 30 * NS_PER_S;
    proxied.conf.retry_timeout_ns = 150 * NS_PER_MS;
    proxied_open(2);
    proxied_expect_reset(SESSION_CONNECT_TIMEOUT);
    ck_assert_int_ge(since_ms(began_at_ns), 150);
    ck_assert_int_lt(since_ms(began_at_ns), 20000);
    EXPECT_LOG_LINES("server a (there): cannot connect: Connection timed out; the "
                     "client is reset",
                     1);
    close(filler);
}

TEST(wait, reload_without_retry_timeout_keeps_the_deadline_of_pending_attempts)
{
    struct upstream_conf next;
    int client;

    open_deaf_server();
    proxied_add(1, PROXIED_ANSWERS);
    proxied.conf.balance = BALANCER_FIRST;
    proxied.conf.connect_timeout_ns = 30 * NS_PER_S;
    proxied.conf.retry_timeout_ns = NS_PER_S;
    proxied_open(2);
    client = host_client(&proxied.host);
    UNTIL(endpoint_active(&proxied_state(0)->endpoint) == 1);
    next = proxied.conf;
    next.retry_timeout_ns = 0;
    atomic_store(&proxied.upstream->conf, &next);
    sockets_hear_reset(client);
    close(client);
    host_expect_end(&proxied.host, SESSION_CONNECT_TIMEOUT);
    EXPECT_LOG_LINES("server a (there): cannot connect: Connection timed out", 1);
    ck_assert_uint_eq(log_lines_with("server b (there): cannot connect"), 0);
    atomic_store(&proxied.upstream->conf, &proxied.conf);
    close(filler);
}

TEST(wait, servers_are_tried_in_turn_before_the_deadline)
{
    open_deaf_server();
    proxied_add(1, PROXIED_REFUSES);
    proxied_add(2, PROXIED_ANSWERS);
    proxied.conf.balance = BALANCER_FIRST;
    proxied.conf.connect_timeout_ns = 100 * NS_PER_MS;
    proxied.conf.retry_timeout_ns = 30 * NS_PER_S;
    proxied_open(3);
    proxied_expect_served_by(2);
    close(filler);
}

TEST(wait, reset_of_the_client_ends_the_attempt)
{
    open_deaf_server();
    proxied.conf.connect_timeout_ns = 30 * NS_PER_S;
    proxied_open(1);
    sockets_reset(host_client(&proxied.host));
    host_expect_end(&proxied.host, SESSION_CLIENT_RESET);
    close(filler);
}

/* ---- while waiting for room ---- */

#define WAITING 100

static int holder, holder_server;

/* A server that has as many connections as it may have. */
static void open_full_server(void)
{
    proxied_add(0, PROXIED_ANSWERS);
    proxied.servers[0].max_connections = 1;
    proxied.conf.queue_length = 2 * WAITING;
    proxied.conf.queue_timeout_ns = 60 * NS_PER_S;
    proxied_open(1);
    holder = host_client(&proxied.host);
    holder_server = sockets_accept(proxied.fds[0]);
}

static void close_full_server(void)
{
    close(holder);
    close(holder_server);
}

/* The holder's session goes on. */
static void expect_ended_by_reset(unsigned n)
{
    UNTIL(atomic_load(&proxied.host.ended) == n);
    ck_assert_int_eq(atomic_load(&proxied.host.reason), SESSION_CLIENT_RESET);
}

static int waiting_client(void)
{
    unsigned n = wait_queue_length(&proxied.upstream->waiting);
    int client = host_client(&proxied.host);

    UNTIL(wait_queue_length(&proxied.upstream->waiting) == n + 1);
    return client;
}

/* How long it takes until the queue notices. */
static int64_t reset_waiting_client_ns(void)
{
    int client = waiting_client();
    int64_t reset_at_ns;

    PAUSE_MS(100);
    reset_at_ns = clock_now_ns();
    sockets_reset(client);
    UNTIL(wait_queue_length(&proxied.upstream->waiting) == 0);
    return clock_now_ns() - reset_at_ns;
}

/* The fastest of several: the machine may be busy. */
TEST(wait, reset_of_a_queued_client_is_noticed_at_once)
{
    int64_t fastest_ns = INT64_MAX;

    open_full_server();
    for (int i = 0; i < 10; i++) {
        int64_t took_ns = reset_waiting_client_ns();

        fastest_ns = took_ns < fastest_ns ? took_ns : fastest_ns;
    }
    ck_assert_int_lt(fastest_ns, 250 * NS_PER_MS);
    expect_ended_by_reset(10);
    close_full_server();
}

TEST(wait, reset_clients_leave_the_queue_and_get_no_connection)
{
    int clients[WAITING], last, server;

    open_full_server();
    for (unsigned i = 0; i < WAITING; i++)
        clients[i] = waiting_client();
    last = waiting_client();
    for (unsigned i = 0; i < WAITING; i++)
        sockets_reset(clients[i]);
    UNTIL(wait_queue_length(&proxied.upstream->waiting) == 1);
    expect_ended_by_reset(WAITING);
    close_full_server();
    server = sockets_accept(
        proxied.fds[0]); /* the first connection since is of the client that stayed */
    sockets_say(last, "x");
    sockets_hear(server, "x");
    close(last);
    close(server);
}

/* It has sent nothing, so that nothing is left to deliver. */
TEST(wait, close_of_a_queued_unix_client_is_noticed)
{
    int ours, theirs;

    open_full_server();
    sockets_unix(&ours, &theirs);
    host_adopt(&proxied.host, ours);
    UNTIL(wait_queue_length(&proxied.upstream->waiting) == 1);
    close(theirs);
    UNTIL(wait_queue_length(&proxied.upstream->waiting) == 0);
    expect_ended_by_reset(1);
    close_full_server();
}

/* 0: it has ended its half; 1: a unix client that has closed its socket. */
TEST_EACH(wait, bytes_sent_before_the_end_of_file_of_a_queued_client_are_delivered, 2)
{
    int client, ours, server;

    open_full_server();
    if (_i == 0) {
        client = waiting_client();
    } else {
        sockets_unix(&ours, &client);
        host_adopt(&proxied.host, ours);
        UNTIL(wait_queue_length(&proxied.upstream->waiting) == 1);
    }
    sockets_say(client, "last words");
    if (_i == 0)
        sockets_end(client);
    else
        close(client);
    PAUSE_MS(5 * HANGUP_SETTLE_NS / NS_PER_MS);
    ck_assert_uint_eq(wait_queue_length(&proxied.upstream->waiting), 1);
    close_full_server();
    server = sockets_accept(proxied.fds[0]);
    sockets_hear(server, "last words");
    sockets_hear_end(server);
    close(server);
    if (_i == 0)
        close(client);
}

/* 0, 1: it ends its half, without having sent a byte; 2, 3: behind a request, with drop. */
TEST_EACH(wait, half_closed_client_leaves_the_queue_without_bytes_or_with_drop, 4)
{
    int client, ours;

    open_full_server();
    if (_i >= 2)
        proxied.conf.queue_abandoned = UPSTREAM_ABANDONED_DROP;
    if (_i % 2 == 0) {
        client = waiting_client();
    } else {
        sockets_unix(&ours, &client);
        host_adopt(&proxied.host, ours);
        UNTIL(wait_queue_length(&proxied.upstream->waiting) == 1);
    }
    if (_i >= 2)
        sockets_say(client, "a request");
    sockets_end(client);
    UNTIL(wait_queue_length(&proxied.upstream->waiting) == 0);
    if (_i < 2)
        sockets_hear_end(client);
    UNTIL(atomic_load(&proxied.host.ended) == 1);
    ck_assert_int_eq(atomic_load(&proxied.host.reason), SESSION_CLIENT_FIN);
    close(client);
    close_full_server();
}

TEST(wait, client_half_closed_before_it_is_queued_leaves_the_queue)
{
    int ours, client;

    open_full_server();
    sockets_tcp(&ours, &client);
    sockets_end(client);
    host_adopt(&proxied.host, ours);
    UNTIL(atomic_load(&proxied.host.ended) == 1);
    ck_assert_int_eq(atomic_load(&proxied.host.reason), SESSION_CLIENT_FIN);
    close(client);
    close_full_server();
}

/* 0: retry_timeout; 1: without it, connect_timeout. */
TEST_EACH(wait, time_in_the_queue_does_not_count_in_the_retry_timeout, 2)
{
    int client;

    proxied.conf.retry_budget = 100;
    proxied.conf.connect_timeout_ns = (_i == 0 ? 30000 : 1000) * NS_PER_MS;
    proxied.conf.retry_timeout_ns = (_i == 0 ? 1000 : 0) * NS_PER_MS;
    open_full_server();
    client = waiting_client();
    PAUSE_MS(1100);
    ck_assert_int_eq(shutdown(proxied.fds[0], SHUT_RDWR), 0); /* it refuses from now on */
    close_full_server();
    sockets_hear_reset(client);
    close(client);
    UNTIL(atomic_load(&proxied.host.ended) == 2);
    ck_assert_uint_ge(atomic_load(&proxied.upstream->retry_budget.retries), 1);
}

TEST(wait, an_idle_timeout_ends_the_attempt)
{
    int client;

    open_deaf_server();
    proxied_open(1);
    proxied.host.conf.idle_timeout_ns = 100 * NS_PER_MS;
    client = host_client(&proxied.host);
    sockets_hear_end(client);
    close(client);
    host_expect_end(&proxied.host, SESSION_IDLE);
    close(filler);
}

TEST(wait, an_abort_ends_the_attempt)
{
    int client;

    open_deaf_server();
    proxied_open(1);
    client = host_client(&proxied.host);
    host_abort(&proxied.host, SESSION_DRAIN);
    sockets_hear_reset(client);
    close(client);
    host_expect_end(&proxied.host, SESSION_DRAIN);
    close(filler);
}

TEST(wait, draining_lets_an_attempt_go_on)
{
    int client, server;

    open_deaf_server();
    proxied_open(1);
    client = host_client(&proxied.host);
    host_drain(&proxied.host);
    close(sockets_accept(proxied.fds[0])); /* the filler: now there is room */
    server = sockets_accept(proxied.fds[0]);
    sockets_say(client, "x");
    sockets_hear(server, "x");
    close(client);
    close(server);
    close(filler);
}

TEST(wait, lack_of_memory_to_connect_resets_the_client_without_blaming_the_server)
{
    int client;

    open_full_server();
    client = waiting_client();
    fault_plan(FAULT_MEMORY, 0, 1, ENOMEM);
    close_full_server(); /* the next allocation is that of the waiting session */
    UNTIL(atomic_load(&proxied.host.ended) == 2);
    ck_assert_int_eq(atomic_load(&proxied.host.reason), SESSION_ERROR);
    sockets_hear_reset(client);
    EXPECT_LOG_LINES("cannot connect: Cannot allocate memory; the client is reset", 1);
    ck_assert_uint_eq(endpoint_active(&proxied_state(0)->endpoint), 0);
    close(client);
    proxied_expect_served_by(0);
}
