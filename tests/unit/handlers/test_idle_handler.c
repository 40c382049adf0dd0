/* handlers/idle_handler: who is idle, never too early, and what is done then. */
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/channel.h"
#include "service/echo.h"
#include "service/proxy.h"
#include "service/session_internal.h"
#include "support/host.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/observe.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "upstream/upstream.h"

#define LIMIT_NS (200 * NS_PER_MS)

static struct host host;
static int client;

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
    host_open(&host, &echo_ops, NULL);
    client = -1;
}

static void teardown(void)
{
    if (client >= 0)
        close(client);
    host_close(&host);
}

static void begin(struct idle_handler_conf conf)
{
    host.pipeline.idle = conf;
    host_pipeline(&host, "idle", NULL);
    client = host_client(&host);
}

static bool exchange(void)
{
    char byte;

    return send(client, "x", 1, MSG_NOSIGNAL) == 1 && recv(client, &byte, 1, 0) == 1;
}

/*
 * Exchange bytes for a while, then be silent; the end must not come within ${limit_ns} of the last
 * byte, however long the test itself was held up.
 */
static void talk_until_idle(struct idle_handler_conf conf, int64_t limit_ns)
{
    int64_t began_at_ns = clock_now_ns(), talked_at_ns = began_at_ns, now_ns = began_at_ns;

    begin(conf);
    for (; now_ns < began_at_ns + 2 * limit_ns && exchange(); now_ns = clock_now_ns()) {
        talked_at_ns = now_ns;
        PAUSE_MS(20);
    }
    sockets_hear_end(client);
    ck_assert_int_ge(clock_now_ns() - talked_at_ns, limit_ns);
    sockets_end(client);
    host_expect_end(&host, SESSION_IDLE);
}

/* More of its echo waits for the client than it may. */
static void stuff(void)
{
    size_t sent = 0;

    do
        sent += sockets_stuff(client, sent);
    while (host_pending(&host) <= CHANNEL_HIGH_BYTES);
}

static struct channel *leg(void)
{
    return LIST_FIRST(&host.sessions, struct session, link)->legs[0];
}

GROUP(idle_handler, setup, teardown);

/* A timer is for when nothing happens. */
TEST(idle_handler, traffic_moves_no_timer)
{
    uint64_t tasks;

    begin((struct idle_handler_conf){.read_ns = 3600 * NS_PER_S, .all_ns = 3600 * NS_PER_S});
    tasks = loop_runner_stats(host.loop).tasks_run;
    for (int i = 0; i < 1000; i++)
        ck_assert(exchange());
    ck_assert_uint_le(loop_runner_stats(host.loop).tasks_run - tasks, 3);
}

TEST(idle_handler, silent_client_is_closed_after_the_read_timeout_and_not_earlier)
{
    int64_t began_at_ns = clock_now_ns();

    begin((struct idle_handler_conf){.read_ns = LIMIT_NS});
    sockets_hear_end(client);
    ck_assert_int_ge(clock_now_ns() - began_at_ns, LIMIT_NS);
    sockets_end(client);
    host_expect_end(&host, SESSION_IDLE);
}

TEST(idle_handler, each_read_restarts_the_timeout)
{
    talk_until_idle((struct idle_handler_conf){.read_ns = 3 * LIMIT_NS}, 3 * LIMIT_NS);
}

TEST(idle_handler, each_write_restarts_the_timeout)
{
    talk_until_idle((struct idle_handler_conf){.write_ns = 3 * LIMIT_NS}, 3 * LIMIT_NS);
}

TEST(idle_handler, reads_and_writes_restart_the_timeout_for_both)
{
    talk_until_idle((struct idle_handler_conf){.all_ns = 3 * LIMIT_NS}, 3 * LIMIT_NS);
}

TEST(idle_handler, client_that_reads_nothing_is_closed_although_bytes_are_buffered)
{
    begin((struct idle_handler_conf){.write_ns = LIMIT_NS});
    ck_assert_uint_gt(sockets_stuff(client, 0), 0); /* and none of its echo is read */
    UNTIL(atomic_load(&host.ended) == 1); /* which is closed in good order, and then cut */
    host_expect_end(&host, SESSION_IDLE);
}

TEST(idle_handler, client_that_is_paused_does_not_count_as_silent)
{
    uint64_t turns;
    unsigned lines;

    begin((struct idle_handler_conf){.read_ns = LIMIT_NS, .action = IDLE_HANDLER_LOG});
    stuff();
    lines = log_lines_with(": idle: "); /* before it was stuffed */
    turns = loop_runner_stats(host.loop).turns;
    PAUSE_MS(3 * LIMIT_NS / NS_PER_MS);
    EXPECT_LOG_LINES(": idle: ", lines);
    ck_assert_uint_le(loop_runner_stats(host.loop).turns - turns,
                      50); /* nor is it asked on and on */
}

static void stop_reading(void *arg)
{
    (void)arg;
    channel_stop_reading(leg(), CHANNEL_STOP_HANDLER);
}

static void read_in_an_hour(void *arg)
{
    (void)arg;
    leg()->last_io_at_ns = loop_now_ns(host.loop) + 3600 * NS_PER_S;
}

static void expect_another_line(void)
{
    unsigned lines = log_lines_with(": idle: ");

    UNTIL(log_lines_with(": idle: ") > lines);
}

TEST(idle_handler, bytes_sent_later_count_as_a_write)
{
    const int64_t limit_ns = 5 * LIMIT_NS;
    static uint8_t taken[65536];
    int64_t taken_at_ns;

    begin((struct idle_handler_conf){.write_ns = limit_ns, .action = IDLE_HANDLER_LOG});
    stuff();
    loop_runner_call(host.loop, stop_reading, NULL);
    PAUSE_MS(limit_ns / NS_PER_MS / 4);
    taken_at_ns = clock_now_ns();
    UNTIL(recv(client, taken, sizeof(taken), MSG_DONTWAIT) < 0 && host_pending(&host) == 0);
    expect_another_line();
    ck_assert_int_ge(clock_now_ns() - taken_at_ns, limit_ns);
    /* Counted once: what is read since then is none. */
    loop_runner_call(host.loop, read_in_an_hour, NULL);
    expect_another_line();
}

TEST(idle_handler, read_after_a_write_does_not_count_as_a_write)
{
    begin((struct idle_handler_conf){.write_ns = 5 * LIMIT_NS, .action = IDLE_HANDLER_LOG});
    ck_assert(exchange());
    loop_runner_call(host.loop, read_in_an_hour, NULL);
    expect_another_line();
}

static uint64_t looks_between_two_lines(void)
{
    uint64_t tasks;

    expect_another_line();
    tasks = observe_stats(host.loop).tasks_run;
    expect_another_line();
    return observe_stats(host.loop).tasks_run - tasks;
}

/* As often as IDLE_POLLS says, if the machine lets it. */
TEST(idle_handler, client_with_buffered_bytes_is_checked_several_times_before_it_is_idle)
{
    begin((struct idle_handler_conf){.write_ns = 5 * LIMIT_NS, .action = IDLE_HANDLER_LOG});
    stuff();
    UNTIL(looks_between_two_lines() >= 3);
}

/* At most one line a second: five looks, here. */
TEST(idle_handler, idle_client_is_checked_once_in_each_timeout)
{
    int64_t from_ns = clock_now_ns();
    uint64_t looks;

    begin((struct idle_handler_conf){.write_ns = LIMIT_NS, .action = IDLE_HANDLER_LOG});
    looks = looks_between_two_lines();
    ck_assert_int_le((int64_t)looks, (clock_now_ns() - from_ns) / LIMIT_NS + 1);
}

TEST(idle_handler, action_log_reports_idleness_repeatedly_and_keeps_the_session)
{
    begin((struct idle_handler_conf){
        .read_ns = LIMIT_NS, .all_ns = 2 * LIMIT_NS, .action = IDLE_HANDLER_LOG});
    UNTIL(log_lines_with("idle: nothing was read for 200 ms") >= 2);
    ck_assert_uint_eq(atomic_load(&host.ended), 0);
    sockets_say(client, "x");
    sockets_hear(client, "x");
}

TEST(idle_handler, read_idleness_does_not_delay_the_timeout_for_both)
{
    begin((struct idle_handler_conf){
        .read_ns = LIMIT_NS, .all_ns = 5 * LIMIT_NS, .action = IDLE_HANDLER_LOG});
    UNTIL(log_lines_with("nothing was read or written for 1000 ms") == 1);
}

static struct address address;
static struct upstream_server_conf server_conf = {
    .id = "a", .address_text = "there", .addresses = &address, .n_addresses = 1, .weight = 1};
static struct upstream_conf conf = {
    .name = "back", .servers = &server_conf, .n_servers = 1, .connect_timeout_ns = 5 * NS_PER_S};
static struct upstream *upstream;
static int listening, server;

static void setup_proxy(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
    listening = sockets_listen(&address, 64);
    ck_assert_int_eq(upstream_create(&upstream, &conf, NULL), 0);
    host_open(&host, &proxy_ops, upstream);
}

static void teardown_proxy(void)
{
    close(server);
    teardown();
    upstream_destroy(upstream);
    close(listening);
}

GROUP(idle_client_of_a_proxy, setup_proxy, teardown_proxy);

TEST(idle_client_of_a_proxy, after_the_clients_end_of_file_the_read_timeout_is_off)
{
    uint64_t tasks;
    unsigned lines;

    begin((struct idle_handler_conf){.read_ns = LIMIT_NS, .action = IDLE_HANDLER_LOG});
    server = sockets_accept(listening);
    sockets_end(client);
    sockets_hear_end(server);
    lines = log_lines_with(": idle: "); /* before it ended */
    tasks = loop_runner_stats(host.loop).tasks_run;
    PAUSE_MS(10 * LIMIT_NS / NS_PER_MS);
    EXPECT_LOG_LINES(": idle: ", lines);
    ck_assert_uint_le(loop_runner_stats(host.loop).tasks_run - tasks, 5);
    sockets_say(server, "x");
    sockets_hear(client, "x");
}

TEST(idle_client_of_a_proxy, after_its_end_of_file_only_writes_count)
{
    begin((struct idle_handler_conf){.all_ns = LIMIT_NS, .action = IDLE_HANDLER_LOG});
    server = sockets_accept(listening);
    sockets_end(client);
    sockets_hear_end(server);
    expect_another_line();
    sockets_say(server, "x");
    sockets_hear(client, "x");
}
