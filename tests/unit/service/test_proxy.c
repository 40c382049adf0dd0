/* service/proxy: two ends, coupled: bytes, end of file, resets and slowness are passed on. */
#include <errno.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/sock.h"
#include "service/proxy.h"
#include "support/fault.h"
#include "support/loop_runner.h"
#include "support/proxied.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

#define LONG_BYTES (4u << 20)

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

GROUP(proxy, proxied_enter_with_server, proxied_leave);

TEST(proxy, bytes_pass_both_ways)
{
    proxied_connect();
    for (int i = 0; i < 100; i++) {
        sockets_say(proxied.client, "question");
        sockets_hear(proxied.server, "question");
        sockets_say(proxied.server, "answer");
        sockets_hear(proxied.client, "answer");
    }
}

TEST(proxy, bytes_sent_before_the_server_is_connected_are_delivered)
{
    proxied.client = host_client(&proxied.host);
    sockets_say(proxied.client, "early");
    proxied.server = sockets_accept(proxied.fds[0]);
    sockets_hear(proxied.server, "early");
}

TEST(proxy, client_half_closed_before_the_server_is_connected_gets_the_answer)
{
    proxied.client = host_client(&proxied.host);
    sockets_say(proxied.client, "question");
    sockets_end(proxied.client);
    proxied.server = sockets_accept(proxied.fds[0]);
    sockets_hear(proxied.server, "question");
    sockets_hear_end(proxied.server);
    sockets_say(proxied.server, "answer");
    close_now(&proxied.server);
    sockets_hear(proxied.client, "answer");
    sockets_hear_end(proxied.client);
    host_expect_end(&proxied.host, SESSION_CLIENT_FIN);
}

TEST(proxy, server_that_sends_first_is_read)
{
    proxied.client = host_client(&proxied.host);
    proxied.server = sockets_accept(proxied.fds[0]);
    sockets_say(proxied.server, "220 hello");
    sockets_hear(proxied.client, "220 hello");
}

TEST(proxy, the_clients_end_of_file_reaches_the_server_which_can_still_answer)
{
    proxied_connect();
    sockets_say(proxied.client, "question");
    sockets_end(proxied.client);
    sockets_hear(proxied.server, "question");
    sockets_hear_end(proxied.server);
    PAUSE_MS(20);
    sockets_say(proxied.server, "late answer");
    sockets_hear(proxied.client, "late answer");
    sockets_end(proxied.server);
    sockets_hear_end(proxied.client);
    host_expect_end(&proxied.host, SESSION_CLIENT_FIN);
}

TEST(proxy, the_servers_end_of_file_reaches_the_client_which_can_still_speak)
{
    proxied_connect();
    sockets_say(proxied.server, "all I have");
    sockets_end(proxied.server);
    sockets_hear(proxied.client, "all I have");
    sockets_hear_end(proxied.client);
    sockets_say(proxied.client, "thanks");
    sockets_hear(proxied.server, "thanks");
    sockets_end(proxied.client);
    sockets_hear_end(proxied.server);
    host_expect_end(&proxied.host, SESSION_UPSTREAM_FIN);
}

static void do_evict(void *arg)
{
    struct session *s = LIST_FIRST(&proxied.host.sessions, struct session, link);
    const struct upstream_server *server =
        membership_now(&proxied.upstream->membership)->servers[0];
    bool *is_evicted = arg;

    is_evicted[0] = proxy_ops.evict(s, NULL, clock_now_ns(), SESSION_SERVER_DOWN);
    is_evicted[1] = proxy_ops.evict(s, server, 0, SESSION_SERVER_DOWN);
    is_evicted[2] = proxy_ops.evict(s, server, clock_now_ns(), SESSION_SERVER_DOWN);
}

TEST(proxy, eviction_reports_the_sessions_that_it_ends)
{
    bool is_evicted[3];

    proxied_connect();
    loop_runner_call(proxied.host.loop, do_evict, is_evicted);
    ck_assert(!is_evicted[0] && !is_evicted[1] && is_evicted[2]);
    host_expect_end(&proxied.host, SESSION_SERVER_DOWN);
}

TEST(proxy, a_reset_of_the_client_is_a_reset_for_the_server)
{
    proxied_connect();
    reset_now(&proxied.client);
    sockets_hear_reset(proxied.server);
    host_expect_end(&proxied.host, SESSION_CLIENT_RESET);
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
    proxied_connect();
    sockets_say_pattern(proxied.server, 0, 40000);
    UNTIL(waiting(proxied.client) == 40000); /* a reset takes back what has not arrived */
    reset_now(&proxied.server);
    sockets_hear_pattern(proxied.client, 0, 40000);
    sockets_hear_reset(proxied.client);
    host_expect_end(&proxied.host, SESSION_UPSTREAM_RESET);
}

TEST(proxy, a_reset_of_a_client_that_has_ended_is_noticed)
{
    proxied_connect();
    sockets_end(proxied.client);
    sockets_hear_end(proxied.server);
    reset_now(&proxied.client); /* it is not read any more: net/hangup tells */
    UNTIL(sock_error(proxied.server) < 0);
    host_expect_end(&proxied.host, SESSION_CLIENT_FIN);
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

    proxied.host.conf.splice = modes[_i];
    proxied_connect();
    stream_begin(&there, proxied.client);
    stream_begin(&back, proxied.server);
    for (size_t at = 0; at < LONG_BYTES; at += 1 << 16) { /* in step, so that both sides are slow */
        sockets_hear_pattern(proxied.server, at, 1 << 16);
        sockets_hear_pattern(proxied.client, at, 1 << 16);
    }
    sockets_hear_end(proxied.server);
    sockets_hear_end(proxied.client);
    pthread_join(there.thread, NULL);
    pthread_join(back.thread, NULL);
    UNTIL(atomic_load(&proxied.host.ended) == 1);
}

TEST_EACH(proxy, a_slow_side_stops_the_other_and_memory_stays_flat, 2 * (int)ARRAY_LEN(modes))
{
    int *slow, *fast;
    size_t sent;

    proxied.host.conf.splice = modes[_i % 3];
    proxied_connect();
    slow = _i < 3 ? &proxied.client : &proxied.server;
    fast = _i < 3 ? &proxied.server : &proxied.client;
    sent = sockets_stuff(*fast, 0);
    ck_assert_uint_gt(sent, 100000);
    ck_assert_uint_le(host_pending(&proxied.host), CHANNEL_HIGH_BYTES + NETLOOP_SCRATCH_BYTES);
    sockets_say(*slow, "not blocked"); /* the other direction is its own */
    sockets_hear(*fast, "not blocked");
    sockets_end(*fast);
    sockets_hear_pattern(*slow, 0, sent);
    sockets_hear_end(*slow);
}

TEST_EACH(proxy, a_reset_while_the_other_side_is_slow_is_passed_on, ARRAY_LEN(modes))
{
    proxied.host.conf.splice = modes[_i];
    proxied_connect();
    sockets_stuff(proxied.server, 0);
    reset_now(&proxied.client); /* which hears nothing */
    for (;;) {
        ssize_t n = recv(proxied.server, (char[100]){0}, 100, 0);

        ck_assert_int_ne(n, 0);
        if (n < 0)
            break;
    }
    ck_assert_int_eq(errno, ECONNRESET);
    host_expect_end(&proxied.host, SESSION_CLIENT_RESET);
}

/* The client takes nothing more, for good; what it says is still for the server. */
TEST(proxy, bytes_of_a_client_that_cannot_receive_reach_the_server)
{
    unsigned calls;

    proxied_connect();
    fault_plan(FAULT_SEND, 1, 1, EPIPE); /* the first is the test's own */
    calls = fault_calls(FAULT_SEND);
    sockets_say(proxied.server, "unwanted");
    UNTIL(fault_calls(FAULT_SEND) == calls + 2);
    sockets_say(proxied.client, "last words");
    sockets_hear(proxied.server, "last words");
    sockets_end(proxied.client);
    sockets_hear_end(proxied.server);
}

TEST(proxy, bytes_of_a_server_that_cannot_receive_reach_the_client)
{
    unsigned calls;

    proxied_connect();
    sockets_say(proxied.server, "413 too large");
    sockets_hear(proxied.client, "413 too large");
    fault_plan(FAULT_SEND, 1, 1, EPIPE);
    calls = fault_calls(FAULT_SEND);
    sockets_say(proxied.client, "more of it");
    UNTIL(fault_calls(FAULT_SEND) == calls + 2);
    sockets_say(proxied.server, ", go away");
    sockets_hear(proxied.client, ", go away");
    close_now(&proxied.server);
    sockets_hear_end(proxied.client);
}

TEST(proxy, a_log_handler_changes_no_byte)
{
    struct stream there;

    host_pipeline(&proxied.host, "log", NULL);
    proxied.host.conf.splice = SPLICE_ON;
    proxied_connect();
    stream_begin(&there, proxied.client);
    sockets_hear_pattern(proxied.server, 0, LONG_BYTES);
    sockets_hear_end(proxied.server);
    pthread_join(there.thread, NULL);
    sockets_say_pattern(proxied.server, 0, 100000);
    sockets_hear_pattern(proxied.client, 0, 100000);
}

TEST(proxy, an_idle_session_ends_on_both_sides)
{
    proxied.host.conf.idle_timeout_ns = 100 * NS_PER_MS;
    proxied_connect();
    sockets_hear_end(proxied.client);
    sockets_hear_end(proxied.server);
    close_now(&proxied.client);
    close_now(&proxied.server);
    host_expect_end(&proxied.host, SESSION_IDLE);
}

TEST(proxy, activity_of_either_side_counts)
{
    proxied.host.conf.idle_timeout_ns = 500 * NS_PER_MS;
    proxied_connect();
    for (int i = 0; i < 8; i++) {
        PAUSE_MS(100);
        sockets_say(i % 2 ? proxied.client : proxied.server, "x");
        sockets_hear(i % 2 ? proxied.server : proxied.client, "x");
    }
    ck_assert_uint_eq(atomic_load(&proxied.host.ended), 0);
}

TEST(proxy, a_half_closed_session_has_a_timeout_of_its_own)
{
    proxied.host.conf.half_close_timeout_ns = 100 * NS_PER_MS;
    proxied_connect();
    PAUSE_MS(200); /* not while both sides are open */
    ck_assert_uint_eq(atomic_load(&proxied.host.ended), 0);
    sockets_end(proxied.client);
    sockets_hear_end(proxied.server);
    sockets_hear_end(proxied.client); /* though the server did not end */
    close_now(&proxied.server);
    host_expect_end(&proxied.host, SESSION_CLIENT_FIN);
}

TEST(proxy, draining_leaves_a_proxied_session_to_its_peers)
{
    proxied_connect();
    host_drain(&proxied.host);
    PAUSE_MS(1100); /* longer than the quiet time */
    sockets_say(proxied.client, "still there");
    sockets_hear(proxied.server, "still there");
    close_now(&proxied.client);
    sockets_hear_end(proxied.server);
    close_now(&proxied.server);
    host_expect_end(&proxied.host, SESSION_CLIENT_FIN);
}

TEST(proxy, aborting_resets_both_sides)
{
    proxied_connect();
    host_abort(&proxied.host, SESSION_DRAIN);
    sockets_hear_reset(proxied.client);
    sockets_hear_reset(proxied.server);
    host_expect_end(&proxied.host, SESSION_DRAIN);
}

/* The first bytes of the server are looked at, and so copied. */
TEST(proxy, after_the_first_bytes_of_the_server_the_next_are_spliced)
{
    unsigned before;

    proxied.host.conf.splice = SPLICE_ON;
    proxied_connect();
    sockets_say(proxied.server, "first");
    sockets_hear(proxied.client, "first");
    before = fault_calls(FAULT_SPLICE);
    sockets_say_pattern(proxied.server, 0, 100000);
    sockets_hear_pattern(proxied.client, 0, 100000);
    ck_assert_uint_gt(fault_calls(FAULT_SPLICE), before);
}
