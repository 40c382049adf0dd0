/* service/session: its timeouts, draining, and that it ends once, whoever ends it. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "service/echo.h"
#include "stats/counters.h"
#include "support/host.h"
#include "support/log_lines.h"
#include "support/observe.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

static struct host host;
static struct counters listener, upstream, server;
static unsigned before;

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
    before = process_descriptors();
    host_open(&host, &echo_ops, NULL);
    listener = upstream = server = (struct counters){.began = 0};
    host.service.counters = &listener;
}

static void teardown(void)
{
    host_close(&host);
    ck_assert_uint_eq(process_descriptors(), before);
}

GROUP(session, setup, teardown);

TEST(session, every_reason_has_a_text)
{
    for (int i = SESSION_OPEN; i < SESSION_REASONS; i++)
        for (int j = SESSION_OPEN; j < i; j++)
            ck_assert_str_ne(session_reason_text((enum session_reason)i),
                             session_reason_text((enum session_reason)j));
}

TEST(session, every_reason_has_a_form_of_one_word)
{
    char word[SESSION_REASON_WORD_BYTES];

    for (int i = SESSION_OPEN; i < SESSION_REASONS; i++)
        ck_assert_ptr_null(strchr(session_reason_word(word, (enum session_reason)i), ' '));
    ck_assert_str_eq(session_reason_word(word, SESSION_CLIENT_FIN), "client_fin");
    ck_assert_str_eq(session_reason_word(word, SESSION_IDLE), "idle");
}

TEST(session, connect_failure_is_attributed_to_the_server_or_to_us)
{
    ck_assert_int_eq(session_reason_of_connect(-ETIMEDOUT), SESSION_CONNECT_TIMEOUT);
    ck_assert_int_eq(session_reason_of_connect(-ECONNREFUSED), SESSION_CONNECT_REFUSED);
    ck_assert_int_eq(session_reason_of_connect(-EHOSTUNREACH), SESSION_CONNECT_REFUSED);
    ck_assert_int_eq(session_reason_of_connect(-ENOENT), SESSION_CONNECT_REFUSED);
    ck_assert_int_eq(session_reason_of_connect(-EMFILE), SESSION_ERROR);
    ck_assert_int_eq(session_reason_of_connect(-ENOMEM), SESSION_ERROR);
}

/* ---- counting ---- */

static void expect_count(const struct counters *c, enum session_reason reason, uint64_t bytes)
{
    struct counters_view v;

    counters_read(c, &v);
    ck_assert_uint_eq(v.began, 1);
    ck_assert_uint_eq(v.open, 0);
    ck_assert_uint_eq(v.ended[reason], 1);
    ck_assert_uint_eq(v.bytes_in, bytes);
    ck_assert_uint_eq(v.bytes_out, bytes);
}

TEST(session, a_session_is_counted_by_its_reason_and_its_bytes)
{
    struct counters_view v;
    int client = host_client(&host);

    counters_read(&listener, &v);
    ck_assert_uint_eq(v.open, 1);
    sockets_say(client, "hello");
    sockets_hear(client, "hello");
    close(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
    expect_count(&listener, SESSION_CLIENT_FIN, 5);
}

TEST(session, refused_session_is_counted_by_the_reason_set_before_or_as_an_error)
{
    struct session *s;

    ck_assert_int_eq(echo_ops.create(&s, &host.service), 0);
    session_refuse(s);
    expect_count(&listener, SESSION_ERROR, 0);
    listener = (struct counters){.began = 0};
    ck_assert_int_eq(echo_ops.create(&s, &host.service), 0);
    session_set_reason(s, SESSION_DRAIN);
    session_refuse(s);
    expect_count(&listener, SESSION_DRAIN, 0);
}

TEST(session, session_is_counted_where_it_is_attached_and_not_where_it_was)
{
    struct counters left = {.began = 0};
    struct session *s;

    ck_assert_int_eq(echo_ops.create(&s, &host.service), 0);
    session_count_at(s, SESSION_AT_UPSTREAM, &upstream);
    session_count_off(s, SESSION_AT_SERVER, SESSION_CONNECT_REFUSED); /* it was at none */
    session_count_at(s, SESSION_AT_SERVER, &left);
    session_count_off(s, SESSION_AT_SERVER, SESSION_CONNECT_REFUSED);
    session_count_at(s, SESSION_AT_SERVER, &server);
    session_set_reason(s, SESSION_CONNECT_TIMEOUT);
    session_set_reason(s, SESSION_CLIENT_RESET); /* the first stands */
    session_refuse(s);
    expect_count(&left, SESSION_CONNECT_REFUSED, 0);
    expect_count(&listener, SESSION_CONNECT_TIMEOUT, 0);
    expect_count(&upstream, SESSION_CONNECT_TIMEOUT, 0);
    expect_count(&server, SESSION_CONNECT_TIMEOUT, 0);
}

/* ---- refusing ---- */

TEST(session, a_refused_session_resets_its_client_and_closes_its_descriptor_once)
{
    struct session *s;
    int ours, client;

    sockets_tcp(&ours, &client);
    ck_assert_int_eq(echo_ops.create(&s, &host.service), 0);
    s->client_fd = ours;
    session_refuse(s);
    sockets_hear_reset(client);
    close(client);
}

TEST(session, session_without_a_descriptor_can_be_refused)
{
    struct session *s;

    ck_assert_int_eq(echo_ops.create(&s, &host.service), 0);
    session_refuse(s);
}

static const char *peer_of_an_adopted_one(const struct session *s)
{
    ck_assert_ptr_nonnull(s->owner);
    return "a";
}

TEST(session, refused_session_asks_for_no_server)
{
    struct service_ops ops = echo_ops;
    struct session *s;

    log_lines_capture(LOG_LEVEL_DEBUG);
    ops.peer_name = peer_of_an_adopted_one;
    host.service.ops = &ops;
    ck_assert_int_eq(ops.create(&s, &host.service), 0);
    sockets_loopback(&s->peer, 12345);
    session_refuse(s);
    ck_assert_uint_eq(
        log_lines_with("listen test: 127.0.0.1:12345 ended: error, 0 bytes in, 0 bytes "
                       "out, 0 ms"),
        1);
}

/* ---- idle ---- */

TEST(session, an_idle_session_is_ended_in_good_order)
{
    int64_t began_at_ns;
    int client;

    host.conf.idle_timeout_ns = 150 * NS_PER_MS;
    client = host_client(&host);
    began_at_ns = clock_now_ns();
    sockets_say(client, "x");
    sockets_hear(client, "x");
    sockets_hear_end(client); /* not a reset */
    ck_assert_int_ge(since_ms(began_at_ns), 150);
    close(client);
    host_expect_end(&host, SESSION_IDLE);
}

TEST(session, a_session_that_closes_has_no_timeout_left)
{
    int client;

    host.conf.idle_timeout_ns = 50 * NS_PER_MS;
    host.conf.linger.timeout_ns = 3600 * NS_PER_S;
    client = host_client(&host);
    sockets_hear_end(client);
    (void)observe_until_asleep(host.loop); /* which it never is with a timer in the past */
    ck_assert_uint_eq(atomic_load(&host.ended), 0);
    close(client);
    host_expect_end(&host, SESSION_IDLE);
}

TEST(session, session_without_any_bytes_is_idle)
{
    int client;

    host.conf.idle_timeout_ns = 100 * NS_PER_MS;
    client = host_client(&host);
    sockets_hear_end(client);
    close(client);
    host_expect_end(&host, SESSION_IDLE);
}

TEST(session, a_busy_session_is_not_idle)
{
    int client;

    host.conf.idle_timeout_ns = 2 * NS_PER_S;
    client = host_client(&host);
    for (int i = 0; i < 8; i++) {
        PAUSE_MS(300);
        sockets_say(client, "x");
        sockets_hear(client, "x");
    }
    ck_assert_uint_eq(atomic_load(&host.ended), 0);
    close(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
}

TEST(session, without_an_idle_timeout_nothing_happens)
{
    int client = host_client(&host);

    PAUSE_MS(200);
    ck_assert_uint_eq(atomic_load(&host.ended), 0);
    close(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
}

/* ---- closing ---- */

/* Receive pieces of the pattern with pauses between them until the reset; how many bytes came. */
static size_t hear_slowly(int client)
{
    static uint8_t data[100000], expected[sizeof(data)];
    size_t heard = 0;

    for (;;) {
        ssize_t n = recv(client, data, sizeof(data), 0);

        if (n < 0) {
            ck_assert_int_eq(errno, ECONNRESET); /* more was on its way to us */
            return heard;
        }
        ck_assert_int_gt(n, 0);
        sockets_pattern(expected, heard, (size_t)n);
        ck_assert_mem_eq(data, expected, (size_t)n);
        heard += (size_t)n;
        PAUSE_MS(2);
    }
}

/*
 * More than the session reads while nothing is taken from it. On a busy machine sockets_stuff()
 * goes on beyond the idle timeout and then never ends, since the session discards what comes; a
 * large buffer needs CAP_NET_ADMIN.
 */
static void say_more_than_is_read(int client)
{
    int bytes = 128 * CHANNEL_HIGH_BYTES;

    if (setsockopt(client, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) < 0)
        sockets_stuff(client, 0);
    else
        sockets_say_pattern(client, 0, (size_t)bytes);
}

TEST(session, closing_goes_on_while_the_client_reads)
{
    int client;

    host.conf.idle_timeout_ns = 500 * NS_PER_MS;
    client = host_client(&host);
    say_more_than_is_read(client);
    /*
     * Long enough that it is idle on a busy machine: what was read goes out, what was not is cut.
     */
    PAUSE_MS(3000);
    ck_assert_uint_gt(hear_slowly(client),
                      CHANNEL_HIGH_BYTES); /* so much had been read before it was paused */
    close(client);
    host_expect_end(&host, SESSION_IDLE);
}

TEST(session, closing_client_that_reads_nothing_is_reset_draining_or_not)
{
    int client;

    host.conf.idle_timeout_ns = 500 * NS_PER_MS;
    host.conf.linger.timeout_ns = NS_PER_S;
    client = host_client(&host);
    sockets_stuff(client, 0);
    host_drain(&host);
    host_expect_end(&host, SESSION_IDLE); /* and then as long as `linger` allows */
    while (recv(client, (char[60000]){0}, 60000, 0) > 0)
        ;
    ck_assert_int_eq(errno, ECONNRESET);
    close(client);
}

/* ---- draining ---- */

TEST(session, a_draining_session_that_is_quiet_ends)
{
    int client = host_client(&host);
    int64_t began_at_ns;

    sockets_say(client, "x");
    sockets_hear(client, "x");
    began_at_ns = clock_now_ns();
    host_drain(&host);
    sockets_hear_end(client);
    ck_assert_int_ge(since_ms(began_at_ns), SESSION_QUIET_NS / NS_PER_MS - 50);
    close(client);
    host_expect_end(&host, SESSION_DRAIN);
}

TEST(session, draining_session_answers_the_bytes_it_has_read)
{
    size_t sent;
    int client = host_client(&host);

    sent = sockets_stuff(client, 0);
    host_drain(&host);
    PAUSE_MS(1100); /* longer than the quiet time: it is not finished */
    ck_assert_uint_eq(atomic_load(&host.ended), 0);
    sockets_hear_pattern(client, 0, sent);
    sockets_hear_end(client);
    close(client);
    host_expect_end(&host, SESSION_DRAIN);
}

TEST(session, draining_session_goes_on_while_its_client_sends)
{
    int client = host_client(&host);

    host_drain(&host);
    for (int i = 0; i < 12; i++) {
        sockets_say(client, "x");
        sockets_hear(client, "x");
        PAUSE_MS(100);
    }
    ck_assert_uint_eq(atomic_load(&host.ended), 0);
    close(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
}

/* ---- aborting ---- */

TEST(session, an_aborted_session_resets_its_client_and_keeps_the_first_reason)
{
    int client = host_client(&host);

    host_abort(&host, SESSION_DRAIN);
    host_abort(&host, SESSION_ERROR);
    sockets_hear_reset(client);
    close(client);
    host_expect_end(&host, SESSION_DRAIN);
}

TEST(session, a_loop_that_ends_leaves_no_session_behind)
{
    int clients[20];

    for (int i = 0; i < 20; i++)
        clients[i] = host_client(&host);
    sockets_stuff(clients[0], 0);
    host_close(&host);
    for (int i = 1; i < 20; i++)
        sockets_hear_reset(clients[i]);
    for (int i = 0; i < 20; i++)
        close(clients[i]);
    host_open(&host, &echo_ops, NULL);
}
