/*
 * service/proxy, until there is a server: which one is tried, which next, and what the client sees
 * of it.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "service/proxy.h"
#include "support/host.h"
#include "support/log_lines.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

#define SERVERS 3

static struct host host;
static struct upstream *upstream;
static struct upstream_server_conf servers[SERVERS];
static struct address addresses[SERVERS + 1];
static struct upstream_conf conf;
static int fds[SERVERS]; /* listening, or bound so that connecting is refused */
static unsigned before;

enum behaviour { ANSWERS, REFUSES, UNKNOWN /* answers, but its name is not known yet */ };

static struct upstream_server *server_at(unsigned i)
{
    return membership_now(&upstream->membership)->servers[i];
}

static void open_server(unsigned i, enum behaviour behaviour)
{
    static const char *const ids[] = {"a", "b", "c"};

    fds[i] =
        behaviour == REFUSES ? sockets_bound(&addresses[i]) : sockets_listen(&addresses[i], 16);
    servers[i] = (struct upstream_server_conf){.id = ids[i],
                                               .address_text = "there",
                                               .addresses = &addresses[i],
                                               .n_addresses = behaviour == UNKNOWN ? 0 : 1,
                                               .weight = 1};
}

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
    before = process_descriptors();
    conf = (struct upstream_conf){
        .name = "back", .servers = servers, .connect_timeout_ns = 5 * NS_PER_S, .retries = 3};
    for (unsigned i = 0; i < SERVERS; i++)
        fds[i] = -1;
}

static void open_upstream(unsigned n)
{
    conf.n_servers = n;
    ck_assert_int_eq(upstream_create(&upstream, &conf, NULL), 0);
    host_open(&host, &proxy_ops, upstream);
}

static void teardown(void)
{
    host_close(&host);
    upstream_destroy(upstream);
    for (unsigned i = 0; i < SERVERS; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    ck_assert_uint_eq(process_descriptors(), before);
}

/* A new client is served by server ${i}. */
static void expect_served_by(unsigned i)
{
    int client = host_client(&host), server = sockets_accept(fds[i]);

    sockets_say(client, "x");
    sockets_hear(server, "x");
    close(client);
    close(server);
}

/* A server that refused listens from now on. */
static void come_back(unsigned i)
{
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    close(fds[i]);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
    ck_assert_int_eq(bind(fd, &addresses[i].u.sa, addresses[i].len), 0);
    ck_assert_int_eq(listen(fd, 16), 0);
    fds[i] = fd;
}

static void expect_reset(enum session_reason reason)
{
    int client = host_client(&host);

    sockets_hear_reset(client);
    close(client);
    host_expect_end(&host, reason);
}

GROUP(connect, setup, teardown);

TEST(connect, servers_take_turns)
{
    for (unsigned i = 0; i < 3; i++)
        open_server(i, ANSWERS);
    open_upstream(3);
    for (unsigned i = 0; i < 6; i++)
        expect_served_by(i % 3);
}

TEST(connect, a_server_that_refuses_is_followed_by_the_next)
{
    open_server(0, REFUSES);
    open_server(1, REFUSES);
    open_server(2, ANSWERS);
    open_upstream(3);
    for (int i = 0; i < 6; i++)
        expect_served_by(2);
}

TEST(connect, a_backup_is_tried_only_after_the_others)
{
    open_server(0, ANSWERS);
    open_server(1, REFUSES);
    open_server(2, ANSWERS);
    servers[0].backup = true;
    open_upstream(3);
    for (int i = 0; i < 4; i++)
        expect_served_by(2);
    close(fds[2]);
    fds[2] = -1;
    for (int i = 0; i < 4; i++)
        expect_served_by(0);
}

TEST(connect, no_more_servers_are_tried_than_retries_say)
{
    open_server(0, REFUSES);
    open_server(1, REFUSES);
    open_server(2, ANSWERS);
    conf.balance = BALANCER_FIRST;
    conf.retries = 1;
    open_upstream(3);
    for (int i = 0; i < 3; i++)
        expect_reset(SESSION_CONNECT_REFUSED); /* a, then b */
    ck_assert_uint_eq(log_lines_with("server c"), 0);
}

TEST(connect, without_retries_the_first_failure_is_the_end)
{
    open_server(0, REFUSES);
    open_server(1, ANSWERS);
    conf.retries = 0;
    open_upstream(2);
    expect_reset(SESSION_CONNECT_REFUSED);
    expect_served_by(1);
}

TEST(connect, when_every_server_refuses_the_client_is_reset_at_once)
{
    int64_t began_at_ns = clock_now_ns();

    for (unsigned i = 0; i < 3; i++)
        open_server(i, REFUSES);
    open_upstream(3);
    expect_reset(SESSION_CONNECT_REFUSED);
    ck_assert_int_lt(since_ms(began_at_ns), 500);
}

/* ---- pauses ---- */

/* 0: a group of one; 1: three, all of which are away. */
TEST_EACH(connect, a_client_waits_for_the_servers_to_come_back, 2)
{
    unsigned n = _i == 0 ? 1 : 3;
    int client, server;

    for (unsigned i = 0; i < n; i++)
        open_server(i, REFUSES);
    conf.retry_budget = 100;
    conf.retry_timeout_ns = 60 * NS_PER_S;
    open_upstream(n);
    client = host_client(&host);
    UNTIL(log_lines_with("cannot connect") >= n);
    UNTIL(atomic_load(&upstream->retry_budget.retries) >= 1);
    sockets_hear_nothing(client);
    come_back(n - 1);
    server = sockets_accept(fds[n - 1]);
    sockets_say(client, "x");
    sockets_hear(server, "x");
    close(client);
    close(server);
}

/* 0: retry_timeout; 1: without it, connect_timeout. */
TEST_EACH(connect, a_client_does_not_wait_longer_than_it_may, 2)
{
    int64_t began_at_ns = clock_now_ns();

    open_server(0, REFUSES);
    conf.retry_budget = 100;
    conf.connect_timeout_ns = (_i == 0 ? 30000 : 400) * NS_PER_MS;
    conf.retry_timeout_ns = (_i == 0 ? 400 : 0) * NS_PER_MS;
    open_upstream(1);
    expect_reset(SESSION_CONNECT_REFUSED);
    ck_assert_uint_ge(atomic_load(&upstream->retry_budget.retries), 1);
    ck_assert_int_lt(since_ms(began_at_ns), 20000);
}

/* 0: no retries at all; 1: no budget. */
TEST_EACH(connect, without_retries_or_a_budget_there_is_no_pause, 2)
{
    open_server(0, REFUSES);
    conf.retries = _i == 0 ? 0 : 3;
    conf.retry_budget = _i == 0 ? 100 : 0;
    conf.connect_timeout_ns = conf.retry_timeout_ns = 3600 * NS_PER_S;
    open_upstream(1);
    expect_reset(SESSION_CONNECT_REFUSED);
    ck_assert_uint_eq(atomic_load(&upstream->retry_budget.retries), 0);
}

TEST(connect, a_client_that_is_gone_ends_the_pause)
{
    int client;

    open_server(0, REFUSES);
    conf.retry_budget = 100;
    conf.retry_timeout_ns = 3600 * NS_PER_S;
    open_upstream(1);
    client = host_client(&host);
    UNTIL(atomic_load(&upstream->retry_budget.retries) >= 4); /* pauses are long by now */
    sockets_reset(client);
    host_expect_end(&host, SESSION_CLIENT_RESET);
}

TEST(connect, retries_above_the_budget_wait_and_are_counted)
{
    int clients[30];

    open_server(0, REFUSES);
    conf.retry_budget = 1;
    conf.retry_timeout_ns = 3600 * NS_PER_S;
    open_upstream(1);
    for (unsigned i = 0; i < 30; i++)
        clients[i] = host_client(&host);
    UNTIL(atomic_load(&upstream->retry_budget.refused) >= 1);
    come_back(0);
    for (unsigned i = 0; i < 30; i++)
        close(sockets_accept(fds[0])); /* all are served in the end */
    for (unsigned i = 0; i < 30; i++)
        close(clients[i]);
}

TEST(connect, all_addresses_of_a_server_are_tried)
{
    open_server(0, REFUSES);
    fds[1] = sockets_listen(&addresses[1], 16);
    servers[0].n_addresses = 2;
    open_upstream(1);
    expect_served_by(1);
}

TEST(connect, a_unix_server_serves_as_well)
{
    open_server(0, ANSWERS);
    close(fds[0]);
    sockets_path(&addresses[0], "server");
    fds[0] = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(fds[0], &addresses[0].u.sa, addresses[0].len), 0);
    ck_assert_int_eq(listen(fds[0], 5), 0);
    open_upstream(1);
    expect_served_by(0);
    unlink(addresses[0].u.un.sun_path);
}

TEST(connect, failures_are_logged_once_a_second_and_server)
{
    open_server(0, REFUSES);
    open_server(1, REFUSES);
    open_upstream(2);
    for (int i = 0; i < 20; i++)
        expect_reset(SESSION_CONNECT_REFUSED);
    ck_assert_uint_ge(log_lines_with("server a (there)"), 1);
    ck_assert_uint_ge(log_lines_with("server b (there)"), 1);
    ck_assert_uint_le(log_lines_with("upstream back: server"), 4);
    ck_assert_uint_ge(log_lines_with("Connection refused"), 2);
}

/* ---- names ---- */

TEST(connect, a_server_whose_name_is_not_known_gets_no_client)
{
    open_server(0, UNKNOWN);
    open_server(1, UNKNOWN);
    open_server(2, ANSWERS);
    open_upstream(3);
    for (int i = 0; i < 6; i++)
        expect_served_by(2);
    ck_assert_uint_eq(log_lines_with("upstream"), 0); /* the resolver has told of it */
}

TEST(connect, a_name_that_is_not_known_does_not_count_as_a_try)
{
    open_server(0, UNKNOWN);
    open_server(1, REFUSES);
    open_server(2, ANSWERS);
    conf.retries = 1;
    open_upstream(3);
    for (int i = 0; i < 4; i++)
        expect_served_by(2);
}

TEST(connect, when_no_name_is_known_the_client_is_reset_at_once)
{
    int64_t began_at_ns = clock_now_ns();

    for (unsigned i = 0; i < 3; i++)
        open_server(i, UNKNOWN);
    open_upstream(3);
    for (int i = 0; i < 20; i++)
        expect_reset(SESSION_NO_SERVER);
    ck_assert_int_lt(since_ms(began_at_ns), 5000);
    ck_assert_uint_ge(log_lines_with("upstream back: no server can be used, the client is reset"),
                      1);
    ck_assert_uint_le(log_lines_with("no server can be used"),
                      1 + (unsigned)since_ms(began_at_ns) / 1000);
}

/* Two new clients are served by one server each of the first two. */
static void expect_served_by_both(void)
{
    int client[2], server[2];

    for (unsigned i = 0; i < 2; i++)
        client[i] = host_client(&host);
    for (unsigned i = 0; i < 2; i++)
        server[i] = sockets_accept(fds[i]);
    for (unsigned i = 0; i < 2; i++) {
        close(client[i]);
        close(server[i]);
    }
}

TEST(connect, a_server_gets_clients_as_soon_as_its_name_is_known)
{
    open_server(0, UNKNOWN);
    open_server(1, ANSWERS);
    open_upstream(2);
    expect_served_by(1);
    expect_served_by(1);
    ck_assert_int_eq(upstream_set_addresses(upstream, server_at(0), &addresses[0], 1), 1);
    expect_served_by_both();
}

TEST(connect, when_we_have_no_descriptor_no_other_server_is_blamed)
{
    int ours, client;

    for (unsigned i = 0; i < 2; i++)
        open_server(i, ANSWERS);
    open_upstream(2);
    sockets_tcp(&ours, &client);
    process_allow_descriptors(0);
    host_adopt(&host, ours);
    sockets_hear_reset(client);
    host_expect_end(&host, SESSION_ERROR);
    process_allow_any_descriptors();
    ck_assert_uint_eq(log_lines_with("server b"), 0);
    close(client);
}

/* ---- what it says about the server ---- */

/* How many sessions server ${i} has, and whether it is left out. */
static uint32_t load_of(unsigned i)
{
    return endpoint_load(&server_at(i)->endpoint);
}

/* Server a comes first, and is left out after two sessions that fail in a row. */
static void open_upstream_that_ejects(bool resets)
{
    conf.balance = BALANCER_FIRST;
    conf.ejection = (struct ejection_conf){.failures = 2,
                                           .time_ns = 100 * NS_PER_S,
                                           .time_max_ns = 100 * NS_PER_S,
                                           .max_percent = 50,
                                           .resets = resets};
    open_upstream(2);
}

TEST(connect, a_session_counts_at_its_server_from_the_attempt_to_its_end)
{
    int client, server;

    open_server(0, REFUSES);
    open_server(1, ANSWERS);
    conf.balance = BALANCER_FIRST;
    open_upstream(2);
    client = host_client(&host);
    server = sockets_accept(fds[1]);
    sockets_say(client, "x");
    sockets_hear(server, "x");
    ck_assert_uint_eq(load_of(0), 0);
    ck_assert_uint_eq(load_of(1), 1);
    close(client);
    close(server);
    UNTIL(load_of(1) == 0);
    ck_assert_uint_eq(atomic_load(&upstream->group.load), 0);
}

TEST(connect, a_server_that_refuses_is_left_out)
{
    open_server(0, REFUSES);
    open_server(1, ANSWERS);
    open_upstream_that_ejects(false);
    expect_served_by(1);
    ck_assert_uint_eq(load_of(0), 0);
    expect_served_by(1);
    ck_assert_uint_eq(load_of(0), ENDPOINT_EJECTED);
    ck_assert_uint_eq(log_lines_with("upstream back: server a: ejected for 100 s: 2 connections"),
                      1);
    expect_served_by(1);
}

/* A client is sent to server a, which says ${answer} and resets the connection. */
static void expect_answer_and_reset(const char *answer)
{
    int client = host_client(&host), server = sockets_accept(fds[0]);

    sockets_say(client, "x");
    sockets_hear(server, "x");
    sockets_say(server, answer);
    sockets_hear(client, answer);
    sockets_reset(server);
    sockets_hear_reset(client);
    close(client);
    host_expect_end(&host, SESSION_UPSTREAM_RESET);
    UNTIL((load_of(0) & ENDPOINT_COUNT_MASK) == 0);
}

TEST(connect, a_server_that_resets_connections_before_its_first_byte_is_left_out)
{
    open_server(0, ANSWERS);
    open_server(1, ANSWERS);
    open_upstream_that_ejects(true);
    expect_answer_and_reset("");
    ck_assert_uint_eq(load_of(0), 0);
    expect_answer_and_reset("");
    ck_assert_uint_eq(load_of(0), ENDPOINT_EJECTED);
    expect_served_by(1);
}

TEST(connect, unless_resets_count_they_leave_nobody_out)
{
    open_server(0, ANSWERS);
    open_server(1, ANSWERS);
    open_upstream_that_ejects(false);
    for (int i = 0; i < 3; i++)
        expect_answer_and_reset("");
    ck_assert_uint_eq(load_of(0), 0);
}

TEST(connect, a_server_that_resets_connections_after_its_first_byte_is_not)
{
    open_server(0, ANSWERS);
    open_server(1, ANSWERS);
    open_upstream_that_ejects(true);
    for (int i = 0; i < 3; i++) {
        expect_answer_and_reset("");
        expect_answer_and_reset("y"); /* which makes the row begin anew, too */
    }
    ck_assert_uint_eq(load_of(0), 0);
}

TEST(connect, a_client_that_leaves_says_nothing_about_the_server)
{
    open_server(0, ANSWERS);
    open_server(1, ANSWERS);
    open_upstream_that_ejects(true);
    for (int i = 0; i < 4; i++) {
        int client = host_client(&host), server = sockets_accept(fds[0]);

        sockets_say(client, "x");
        sockets_hear(server, "x");
        if (i % 2)
            sockets_reset(client);
        else
            close(client);
        close(server);
        UNTIL(atomic_load(&host.ended) == atomic_load(&host.adopted));
        UNTIL((load_of(0) & ENDPOINT_COUNT_MASK) == 0);
    }
    ck_assert_uint_eq(load_of(0), 0);
}

/* ---- while connecting ---- */

/* A server whose backlog is full: it neither answers nor refuses. */
static int filler;

static void open_deaf_server(void)
{
    open_server(0, ANSWERS);
    ck_assert_int_eq(listen(fds[0], 0), 0);
    filler = sockets_connect(&addresses[0]);
}

TEST(connect, a_server_that_does_not_answer_in_time_is_followed_by_the_next)
{
    open_deaf_server();
    open_server(1, ANSWERS);
    conf.connect_timeout_ns = 100 * NS_PER_MS;
    open_upstream(2);
    expect_served_by(1);
    close(filler);
}

TEST(connect, all_attempts_together_have_a_deadline)
{
    int64_t began_at_ns = clock_now_ns();

    open_deaf_server();
    open_server(1, ANSWERS);
    conf.balance = BALANCER_FIRST;
    conf.connect_timeout_ns = 30 * NS_PER_S;
    conf.retry_timeout_ns = 150 * NS_PER_MS;
    open_upstream(2);
    expect_reset(SESSION_CONNECT_TIMEOUT);
    ck_assert_int_ge(since_ms(began_at_ns), 150);
    ck_assert_int_lt(since_ms(began_at_ns), 20000);
    ck_assert_uint_eq(log_lines_with("server a (there): cannot connect: Connection timed out; the "
                                     "client is reset"),
                      1);
    close(filler);
}

TEST(connect, before_that_deadline_servers_are_tried_as_ever)
{
    open_deaf_server();
    open_server(1, REFUSES);
    open_server(2, ANSWERS);
    conf.balance = BALANCER_FIRST;
    conf.connect_timeout_ns = 100 * NS_PER_MS;
    conf.retry_timeout_ns = 30 * NS_PER_S;
    open_upstream(3);
    expect_served_by(2);
    close(filler);
}

TEST(connect, a_client_that_is_gone_ends_the_attempt)
{
    open_deaf_server();
    conf.connect_timeout_ns = 30 * NS_PER_S;
    open_upstream(1);
    sockets_reset(host_client(&host));
    host_expect_end(&host, SESSION_CLIENT_RESET);
    close(filler);
}

/* ---- while waiting for room ---- */

#define WAITING 100

static int holder, holder_server;

/* A server that has as many connections as it may have. */
static void open_full_server(void)
{
    open_server(0, ANSWERS);
    servers[0].max_connections = 1;
    conf.queue_length = 2 * WAITING;
    conf.queue_timeout_ns = 60 * NS_PER_S;
    open_upstream(1);
    holder = host_client(&host);
    holder_server = sockets_accept(fds[0]);
}

static void close_full_server(void)
{
    close(holder);
    close(holder_server);
}

/* The holder's session goes on. */
static void expect_ended_by_reset(unsigned n)
{
    UNTIL(atomic_load(&host.ended) == n);
    ck_assert_int_eq(atomic_load(&host.reason), SESSION_CLIENT_RESET);
}

static int waiting_client(void)
{
    unsigned n = wait_queue_length(&upstream->waiting);
    int client = host_client(&host);

    UNTIL(wait_queue_length(&upstream->waiting) == n + 1);
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
    UNTIL(wait_queue_length(&upstream->waiting) == 0);
    return clock_now_ns() - reset_at_ns;
}

/* The fastest of several: the machine may be busy. */
TEST(connect, a_client_that_goes_while_it_waits_for_room_is_noticed_at_once)
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

TEST(connect, only_clients_that_stay_get_the_room_that_they_wait_for)
{
    int clients[WAITING], last, server;

    open_full_server();
    for (unsigned i = 0; i < WAITING; i++)
        clients[i] = waiting_client();
    last = waiting_client();
    for (unsigned i = 0; i < WAITING; i++)
        sockets_reset(clients[i]);
    UNTIL(wait_queue_length(&upstream->waiting) == 1);
    expect_ended_by_reset(WAITING);
    close_full_server();
    server = sockets_accept(fds[0]); /* the first connection since is of the client that stayed */
    sockets_say(last, "x");
    sockets_hear(server, "x");
    close(last);
    close(server);
}

/* It has sent nothing, so that nothing is left to deliver. */
TEST(connect, a_unix_client_that_closes_while_it_waits_is_noticed)
{
    int ours, theirs;

    open_full_server();
    sockets_unix(&ours, &theirs);
    host_adopt(&host, ours);
    UNTIL(wait_queue_length(&upstream->waiting) == 1);
    close(theirs);
    UNTIL(wait_queue_length(&upstream->waiting) == 0);
    expect_ended_by_reset(1);
    close_full_server();
}

/* 0: it has ended its half; 1: a unix client that has closed its socket. */
TEST_EACH(connect, what_a_client_has_sent_before_it_ended_is_delivered_when_there_is_room, 2)
{
    int client, ours, server;

    open_full_server();
    if (_i == 0) {
        client = waiting_client();
    } else {
        sockets_unix(&ours, &client);
        host_adopt(&host, ours);
        UNTIL(wait_queue_length(&upstream->waiting) == 1);
    }
    sockets_say(client, "last words");
    if (_i == 0)
        sockets_end(client);
    else
        close(client);
    PAUSE_MS(5 * HANGUP_SETTLE_NS / NS_PER_MS);
    ck_assert_uint_eq(wait_queue_length(&upstream->waiting), 1);
    close_full_server();
    server = sockets_accept(fds[0]);
    sockets_hear(server, "last words");
    sockets_hear_end(server);
    close(server);
    if (_i == 0)
        close(client);
}

TEST(connect, an_idle_timeout_ends_the_attempt)
{
    int client;

    open_deaf_server();
    open_upstream(1);
    host.conf.idle_timeout_ns = 100 * NS_PER_MS;
    client = host_client(&host);
    sockets_hear_end(client);
    close(client);
    host_expect_end(&host, SESSION_IDLE);
    close(filler);
}

TEST(connect, an_abort_ends_the_attempt)
{
    int client;

    open_deaf_server();
    open_upstream(1);
    client = host_client(&host);
    host_abort(&host, SESSION_DRAIN);
    sockets_hear_reset(client);
    close(client);
    host_expect_end(&host, SESSION_DRAIN);
    close(filler);
}

TEST(connect, draining_lets_an_attempt_go_on)
{
    int client, server;

    open_deaf_server();
    open_upstream(1);
    client = host_client(&host);
    host_drain(&host);
    close(sockets_accept(fds[0])); /* the filler: now there is room */
    server = sockets_accept(fds[0]);
    sockets_say(client, "x");
    sockets_hear(server, "x");
    close(client);
    close(server);
    close(filler);
}
