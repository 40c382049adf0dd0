/* service/session_timer: who must say something within what time, and what the one timer costs. */
#include <pthread.h>
#include <stdalign.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/host.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/timed.h"
#include "support/until.h"

static void do_connect(void *arg)
{
    timed_pair_connect(timed.pairs[0], *(int *)arg);
}

/* The server that a session waited for is there. */
static void connect_server(void)
{
    int fd;

    sockets_tcp(&fd, &timed.server);
    loop_runner_call(timed.host.loop, do_connect, &fd);
}

static void do_look(void *arg)
{
    const struct timer *timer = &timed.pairs[0]->session.timer;

    *(int64_t *)arg = timer->state == TIMER_IDLE ? CLOCK_NEVER : timer->at_ns;
}

/* When the timer is to fire; CLOCK_NEVER: it is not armed. */
static int64_t timer_at_ns(void)
{
    int64_t at_ns;

    loop_runner_call(timed.host.loop, do_look, &at_ns);
    return at_ns;
}

/* ---- one side says nothing ---- */

GROUP(timer, timed_setup, timed_teardown);

TEST(timer, client_that_falls_silent_ends_the_session)
{
    int64_t at_ns;

    timed.host.conf.client_idle_timeout_ns = 800 * NS_PER_MS;
    timed_connect_both();
    PAUSE_MS(300);
    at_ns = clock_now_ns();
    sockets_say(timed.client, "x");
    sockets_hear(timed.server, "x");
    timed_expect_end_after(at_ns, 800, SESSION_IDLE);
}

TEST(timer, bytes_of_the_server_do_not_restart_the_timeout_of_the_client)
{
    int64_t at_ns;

    timed.host.conf.client_idle_timeout_ns = 3 * NS_PER_S;
    timed.host.conf.idle_timeout_ns = 60 * NS_PER_S;
    at_ns = clock_now_ns();
    timed_connect_both();
    for (int i = 0; i < 5; i++) {
        sockets_say(timed.server, "x");
        sockets_hear(timed.client, "x");
        PAUSE_MS(60);
    }
    timed_expect_end_after(at_ns, 3000, SESSION_IDLE);
}

TEST(timer, bytes_of_the_client_do_not_restart_the_timeout_of_the_server)
{
    int64_t at_ns;

    timed.server_idle_timeout_ns = 3 * NS_PER_S;
    at_ns = clock_now_ns();
    timed_connect_both();
    for (int i = 0; i < 5; i++) {
        sockets_say(timed.client, "x");
        sockets_hear(timed.server, "x");
        PAUSE_MS(60);
    }
    timed_expect_end_after(at_ns, 3000, SESSION_IDLE);
}

TEST(timer, each_side_that_sends_in_time_keeps_the_session_open)
{
    timed.host.conf.client_idle_timeout_ns = 800 * NS_PER_MS;
    timed.server_idle_timeout_ns = NS_PER_S;
    timed_connect_both();
    for (int i = 0; i < 12; i++) {
        PAUSE_MS(100);
        sockets_say(timed.client, "x");
        sockets_hear(timed.server, "x");
        if (i % 2)
            sockets_say(timed.server, "y");
    }
    ck_assert_uint_eq(atomic_load(&timed.host.ended), 0);
}

TEST(timer, client_that_is_paused_does_not_count_as_silent)
{
    size_t sent;

    timed.host.conf.client_idle_timeout_ns = 300 * NS_PER_MS;
    timed_connect_both();
    sent = sockets_stuff(timed.client, 0); /* the server takes nothing */
    PAUSE_MS(1000);
    ck_assert_uint_eq(atomic_load(&timed.host.ended), 0);
    /*
     * Not all of it: once the last byte was read from the client it is silent, and the rest would
     * be lost.
     */
    sockets_hear_pattern(timed.server, 0, sent / 2);
}

TEST(timer, half_closed_client_does_not_time_out)
{
    timed.host.conf.client_idle_timeout_ns = 150 * NS_PER_MS;
    timed_connect_both();
    sockets_end(timed.client);
    sockets_hear_end(timed.server);
    PAUSE_MS(500);
    sockets_say(timed.server, "answer");
    sockets_hear(timed.client, "answer");
    ck_assert_uint_eq(atomic_load(&timed.host.ended), 0);
}

static void *stream(void *arg)
{
    char data[4096] = {0};
    atomic_size_t *sent = arg;
    ssize_t n;

    while ((n = send(timed.server, data, sizeof(data), MSG_NOSIGNAL)) > 0)
        atomic_fetch_add(sent, (size_t)n);
    return NULL;
}

TEST(timer, silent_slow_receiver_is_found_at_most_a_quarter_late)
{
    static char data[60000];
    atomic_size_t sent = 0;
    size_t heard = 0;
    pthread_t thread;
    int64_t at_ns;

    timed.host.conf.client_idle_timeout_ns = 2 * NS_PER_S;
    timed_connect_both();
    sockets_say(timed.client, "x");
    sockets_hear(timed.server, "x");
    at_ns = clock_now_ns();
    ck_assert_int_eq(pthread_create(&thread, NULL, stream, &sent), 0);
    while (recv(timed.server, data, 1, MSG_PEEK | MSG_DONTWAIT) <
           0) { /* until its end of file comes */
        ssize_t n = recv(timed.client, data, sizeof(data), MSG_DONTWAIT);

        heard += n > 0 ? (size_t)n : 0;
        PAUSE_MS(2);
        ck_assert_int_lt(since_ms(at_ns), 3500); /* twice the timeout is four seconds */
    }
    ck_assert_int_ge(since_ms(at_ns), 1980);
    ck_assert_uint_gt(atomic_load(&sent), heard); /* it was slow */
    sockets_reset(timed.client);
    timed.client = -1;
    pthread_join(thread, NULL);
    host_expect_end(&timed.host, SESSION_IDLE);
}

/* ---- the first byte ---- */

TEST(timer, client_that_never_sends_ends_the_session)
{
    int64_t at_ns;

    timed.host.conf.first_byte_timeout_ns = 300 * NS_PER_MS;
    at_ns = clock_now_ns();
    timed_connect_both();
    sockets_say(timed.server, "220 ready");
    sockets_hear(timed.client, "220 ready");
    timed_expect_end_after(at_ns, 300, SESSION_IDLE);
}

TEST(timer, one_byte_satisfies_the_first_byte_timeout)
{
    timed.host.conf.first_byte_timeout_ns = 300 * NS_PER_MS;
    timed_connect_both();
    sockets_say(timed.client, "x");
    PAUSE_MS(600);
    sockets_say(timed.server, "y");
    sockets_hear(timed.client, "y");
    ck_assert_uint_eq(atomic_load(&timed.host.ended), 0);
}

TEST(timer, timeouts_of_either_side_begin_with_the_connection_to_the_server)
{
    int64_t at_ns;

    timed.host.conf.first_byte_timeout_ns = 300 * NS_PER_MS;
    timed.host.conf.client_idle_timeout_ns = 300 * NS_PER_MS;
    timed.server_idle_timeout_ns = 300 * NS_PER_MS;
    timed.server_fd = -1;
    timed.client = host_client(&timed.host);
    PAUSE_MS(700);
    ck_assert_uint_eq(atomic_load(&timed.host.ended), 0);
    at_ns = clock_now_ns();
    connect_server();
    timed_expect_end_after(at_ns, 300, SESSION_IDLE);
}

TEST(timer, bytes_sent_before_the_connection_to_the_server_satisfy_the_timeout)
{
    timed.host.conf.first_byte_timeout_ns = 200 * NS_PER_MS;
    timed.server_fd = -1;
    timed.client = host_client(&timed.host);
    sockets_say(timed.client, "early");
    PAUSE_MS(400);
    connect_server();
    sockets_hear(timed.server, "early");
    PAUSE_MS(400);
    ck_assert_uint_eq(atomic_load(&timed.host.ended), 0);
}

/* ---- what it costs ---- */

TEST(timer, traffic_does_not_move_the_timer)
{
    int64_t at_ns;

    timed.host.conf.idle_timeout_ns = 40 * NS_PER_S;
    timed.host.conf.client_idle_timeout_ns = 80 * NS_PER_S;
    timed.host.conf.first_byte_timeout_ns = 50 * NS_PER_S;
    timed.host.conf.max_lifetime_ns = 100 * NS_PER_S;
    timed_connect_both();
    at_ns = timer_at_ns();
    for (int i = 0; i < 100; i++) {
        sockets_say(timed.client, "x");
        sockets_hear(timed.server, "x");
    }
    ck_assert_int_eq(timer_at_ns(), at_ns);
}

TEST(timer, without_any_timeout_there_is_no_timer)
{
    timed_connect_both();
    sockets_say(timed.client, "x");
    sockets_hear(timed.server, "x");
    ck_assert_int_eq(timer_at_ns(), CLOCK_NEVER);
}
