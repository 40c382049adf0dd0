/* service/proxy: two ends, coupled: bytes, end of file, resets and slowness are passed on. */
#include <errno.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/sock.h"
#include "service/proxy.h"
#include "support/fault.h"
#include "support/host.h"
#include "support/log_lines.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

#define LONG_BYTES (4u << 20)

static struct host host;
static struct address address;
static struct upstream_server_conf server_conf = {
    .id = "a", .address_text = "there", .addresses = &address, .n_addresses = 1, .weight = 1};
static struct upstream_conf conf = {
    .name = "back", .servers = &server_conf, .n_servers = 1, .connect_timeout_ns = 5 * NS_PER_S};
static struct upstream *upstream;
static int listening, client, server;
static unsigned before;

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
    before = process_descriptors();
    listening = sockets_listen(&address, 64);
    ck_assert_int_eq(upstream_create(&upstream, &conf, NULL), 0);
    host_open(&host, &proxy_ops, upstream);
    client = server = -1;
}

static void teardown(void)
{
    host_close(&host);
    upstream_destroy(upstream);
    close(listening);
    if (client >= 0)
        close(client);
    if (server >= 0)
        close(server);
    ck_assert_uint_eq(process_descriptors(), before);
}

static void connect_both(void)
{
    client = host_client(&host);
    server = sockets_accept(listening);
    sockets_say(client,
                "x"); /* what comes through shows that the session knows the connection, too */
    sockets_hear(server, "x");
}

static void close_now(int *fd)
{
    close(*fd);
    *fd = -1;
}

static void reset_now(int *fd)
{
    sockets_reset(*fd);
    *fd = -1;
}

static const enum splice_mode modes[] = {SPLICE_AUTO, SPLICE_ON, SPLICE_OFF};

GROUP(proxy, setup, teardown);

TEST(proxy, bytes_pass_both_ways)
{
    connect_both();
    for (int i = 0; i < 100; i++) {
        sockets_say(client, "question");
        sockets_hear(server, "question");
        sockets_say(server, "answer");
        sockets_hear(client, "answer");
    }
}

TEST(proxy, what_the_client_says_before_there_is_a_server_is_not_lost)
{
    client = host_client(&host);
    sockets_say(client, "early");
    server = sockets_accept(listening);
    sockets_hear(server, "early");
}

TEST(proxy, a_client_that_said_all_and_ended_before_there_was_a_server_is_answered)
{
    client = host_client(&host);
    sockets_say(client, "question");
    sockets_end(client);
    server = sockets_accept(listening);
    sockets_hear(server, "question");
    sockets_hear_end(server);
    sockets_say(server, "answer");
    close_now(&server);
    sockets_hear(client, "answer");
    sockets_hear_end(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
}

TEST(proxy, a_server_that_speaks_first_is_heard)
{
    client = host_client(&host);
    server = sockets_accept(listening);
    sockets_say(server, "220 hello");
    sockets_hear(client, "220 hello");
}

TEST(proxy, the_clients_end_of_file_reaches_the_server_which_can_still_answer)
{
    connect_both();
    sockets_say(client, "question");
    sockets_end(client);
    sockets_hear(server, "question");
    sockets_hear_end(server);
    PAUSE_MS(20);
    sockets_say(server, "late answer");
    sockets_hear(client, "late answer");
    sockets_end(server);
    sockets_hear_end(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
}

TEST(proxy, the_servers_end_of_file_reaches_the_client_which_can_still_speak)
{
    connect_both();
    sockets_say(server, "all I have");
    sockets_end(server);
    sockets_hear(client, "all I have");
    sockets_hear_end(client);
    sockets_say(client, "thanks");
    sockets_hear(server, "thanks");
    sockets_end(client);
    sockets_hear_end(server);
    host_expect_end(&host, SESSION_UPSTREAM_FIN);
}

TEST(proxy, a_reset_of_the_client_is_a_reset_for_the_server)
{
    connect_both();
    reset_now(&client);
    sockets_hear_reset(server);
    host_expect_end(&host, SESSION_CLIENT_RESET);
}

/* What the kernel has for us to receive. */
static int waiting(int fd)
{
    int bytes;

    ck_assert_int_eq(ioctl(fd, FIONREAD, &bytes), 0);
    return bytes;
}

TEST(proxy, a_reset_of_the_server_is_a_reset_for_the_client_behind_its_last_bytes)
{
    connect_both();
    sockets_say_pattern(server, 0, 40000);
    UNTIL(waiting(client) == 40000); /* a reset takes back what has not arrived */
    reset_now(&server);
    sockets_hear_pattern(client, 0, 40000);
    sockets_hear_reset(client);
    host_expect_end(&host, SESSION_UPSTREAM_RESET);
}

TEST(proxy, a_reset_of_a_client_that_has_ended_is_noticed)
{
    connect_both();
    sockets_end(client);
    sockets_hear_end(server);
    reset_now(&client); /* it is not read any more: net/hangup tells */
    UNTIL(sock_error(server) < 0);
    host_expect_end(&host, SESSION_CLIENT_FIN);
}

struct stream {
    int from;
    pthread_t thread;
};

static void *say_long(void *arg)
{
    struct stream *s = arg;

    sockets_say_pattern(s->from, 0, LONG_BYTES);
    sockets_end(s->from);
    return NULL;
}

static void stream_begin(struct stream *s, int from)
{
    s->from = from;
    pthread_create(&s->thread, NULL, say_long, s);
}

TEST_EACH(proxy, long_streams_pass_both_ways_at_once_in_every_splice_mode, ARRAY_LEN(modes))
{
    struct stream there, back;

    host.conf.splice = modes[_i];
    connect_both();
    stream_begin(&there, client);
    stream_begin(&back, server);
    for (size_t at = 0; at < LONG_BYTES; at += 1 << 16) { /* in step, so that both sides are slow */
        sockets_hear_pattern(server, at, 1 << 16);
        sockets_hear_pattern(client, at, 1 << 16);
    }
    sockets_hear_end(server);
    sockets_hear_end(client);
    pthread_join(there.thread, NULL);
    pthread_join(back.thread, NULL);
    UNTIL(atomic_load(&host.ended) == 1);
}

TEST_EACH(proxy, a_slow_side_stops_the_other_and_memory_stays_flat, 2 * (int)ARRAY_LEN(modes))
{
    int *slow, *fast;
    size_t sent;

    host.conf.splice = modes[_i % 3];
    connect_both();
    slow = _i < 3 ? &client : &server;
    fast = _i < 3 ? &server : &client;
    sent = sockets_stuff(*fast, 0);
    ck_assert_uint_gt(sent, 100000);
    ck_assert_uint_le(host_pending(&host), CHANNEL_HIGH_BYTES + NETLOOP_SCRATCH_BYTES);
    sockets_say(*slow, "not blocked"); /* the other direction is its own */
    sockets_hear(*fast, "not blocked");
    sockets_end(*fast);
    sockets_hear_pattern(*slow, 0, sent);
    sockets_hear_end(*slow);
}

TEST_EACH(proxy, a_reset_while_the_other_side_is_slow_is_passed_on, ARRAY_LEN(modes))
{
    host.conf.splice = modes[_i];
    connect_both();
    sockets_stuff(server, 0);
    reset_now(&client); /* which hears nothing */
    for (;;) {
        ssize_t n = recv(server, (char[100]){0}, 100, 0);

        ck_assert_int_ne(n, 0);
        if (n < 0)
            break;
    }
    ck_assert_int_eq(errno, ECONNRESET);
    host_expect_end(&host, SESSION_CLIENT_RESET);
}

/* The client takes nothing more, for good; what it says is still for the server. */
TEST(proxy, what_a_client_says_that_does_not_listen_any_more_reaches_the_server)
{
    unsigned calls;

    connect_both();
    fault_plan(FAULT_SEND, 1, 1, EPIPE); /* the first is the test's own */
    calls = fault_calls(FAULT_SEND);
    sockets_say(server, "unwanted");
    UNTIL(fault_calls(FAULT_SEND) == calls + 2);
    sockets_say(client, "last words");
    sockets_hear(server, "last words");
    sockets_end(client);
    sockets_hear_end(server);
}

TEST(proxy, what_a_server_says_that_does_not_listen_any_more_reaches_the_client)
{
    unsigned calls;

    connect_both();
    sockets_say(server, "413 too large");
    sockets_hear(client, "413 too large");
    fault_plan(FAULT_SEND, 1, 1, EPIPE);
    calls = fault_calls(FAULT_SEND);
    sockets_say(client, "more of it");
    UNTIL(fault_calls(FAULT_SEND) == calls + 2);
    sockets_say(server, ", go away");
    sockets_hear(client, ", go away");
    close_now(&server);
    sockets_hear_end(client);
}

TEST(proxy, a_log_handler_changes_no_byte)
{
    struct stream there;

    host_pipeline(&host, "log", NULL);
    host.conf.splice = SPLICE_ON;
    connect_both();
    stream_begin(&there, client);
    sockets_hear_pattern(server, 0, LONG_BYTES);
    sockets_hear_end(server);
    pthread_join(there.thread, NULL);
    sockets_say_pattern(server, 0, 100000);
    sockets_hear_pattern(client, 0, 100000);
}

TEST(proxy, an_idle_session_ends_on_both_sides)
{
    host.conf.idle_timeout_ns = 100 * NS_PER_MS;
    connect_both();
    sockets_hear_end(client);
    sockets_hear_end(server);
    close_now(&client);
    close_now(&server);
    host_expect_end(&host, SESSION_IDLE);
}

TEST(proxy, activity_of_either_side_counts)
{
    host.conf.idle_timeout_ns = 500 * NS_PER_MS;
    connect_both();
    for (int i = 0; i < 8; i++) {
        PAUSE_MS(100);
        sockets_say(i % 2 ? client : server, "x");
        sockets_hear(i % 2 ? server : client, "x");
    }
    ck_assert_uint_eq(atomic_load(&host.ended), 0);
}

TEST(proxy, a_half_closed_session_has_a_timeout_of_its_own)
{
    host.conf.half_close_timeout_ns = 100 * NS_PER_MS;
    connect_both();
    PAUSE_MS(200); /* not while both sides are open */
    ck_assert_uint_eq(atomic_load(&host.ended), 0);
    sockets_end(client);
    sockets_hear_end(server);
    sockets_hear_end(client); /* though the server did not end */
    close_now(&server);
    host_expect_end(&host, SESSION_CLIENT_FIN);
}

TEST(proxy, draining_leaves_a_proxied_session_to_its_peers)
{
    connect_both();
    host_drain(&host);
    PAUSE_MS(1100); /* longer than the quiet time */
    sockets_say(client, "still there");
    sockets_hear(server, "still there");
    close_now(&client);
    sockets_hear_end(server);
    close_now(&server);
    host_expect_end(&host, SESSION_CLIENT_FIN);
}

TEST(proxy, aborting_resets_both_sides)
{
    connect_both();
    host_abort(&host, SESSION_DRAIN);
    sockets_hear_reset(client);
    sockets_hear_reset(server);
    host_expect_end(&host, SESSION_DRAIN);
}
