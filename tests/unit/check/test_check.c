/*
 * check/check: one outcome for each check, whatever the server does, and nothing left behind on
 * either side.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "check/check.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "unit/check/check_peer.h"

/* Nobody is there, and nobody comes in the next moment. */
static void expect_no_client(int listening)
{
    PAUSE_MS(100);
    ck_assert_int_eq(fcntl(listening, F_SETFL, O_NONBLOCK), 0);
    ck_assert_int_eq(accept(listening, NULL, NULL), -1);
    ck_assert_int_eq(errno, EAGAIN);
}

/* ---- connecting only ---- */

GROUP(check, setup, teardown);

TEST(check, listening_server_passes_and_never_accepts_the_check)
{
    int listening = sockets_listen(&addresses[0], 5);
    unsigned waits = time_waits(port_of(&addresses[0])); /* of who had the port before */

    check_now("", "");
    expect_outcome(CHECK_PASSED, "passed");
    expect_no_client(listening);
    ck_assert_uint_le(time_waits(port_of(&addresses[0])), waits);
    close(listening);
}

TEST(check, listening_unix_server_passes)
{
    int listening = listen_unix(&addresses[0], 5);

    check_now("", "");
    expect_outcome(CHECK_PASSED, "passed");
    close(listening);
    unlink(addresses[0].u.un.sun_path);
}

TEST(check, a_refusal_fails)
{
    int bound = sockets_bound(&addresses[0]);

    check_now("", "");
    expect_outcome(CHECK_REFUSED, "connection refused");
    close(bound);
}

TEST(check, missing_unix_socket_fails_with_the_reason)
{
    sockets_path(&addresses[0], "none");
    check_now("", "");
    expect_outcome(CHECK_UNREACHABLE, "cannot be reached: No such file or directory");
}

TEST(check, a_full_backlog_times_out_connecting)
{
    int listening = sockets_listen(&addresses[0], 0), filler = sockets_connect(&addresses[0]);

    conf.timeout_ns = SHORT_NS;
    check_now("", "");
    expect_outcome(CHECK_CONNECT_TIMEOUT, "timed out connecting");
    expect_late(SHORT_NS);
    close(filler);
    close(listening);
}

TEST(check, a_full_unix_backlog_times_out_connecting)
{
    int listening = listen_unix(&addresses[0], 0), filler = sockets_connect(&addresses[0]);

    conf.timeout_ns = SHORT_NS;
    check_now("PING", "PONG");
    expect_outcome(CHECK_CONNECT_TIMEOUT, "timed out connecting");
    expect_late(SHORT_NS);
    close(filler);
    close(listening);
    unlink(addresses[0].u.un.sun_path);
}

TEST(check, any_address_that_answers_passes_the_check)
{
    int refused = sockets_bound(&addresses[0]), listening = sockets_listen(&addresses[1], 5);

    n_addresses = 2;
    check_now("", "");
    expect_outcome(CHECK_PASSED, "passed");
    close(refused);
    close(listening);
}

/* ---- an answer ---- */

/*
 * When both ends of file are under way at the same time one of the two has to wait: seldom, and not
 * each time.
 */
TEST(check, a_server_that_closes_behind_its_answer_leaves_hardly_a_time_wait_with_us)
{
    int listening = sockets_listen(&addresses[0], 5);
    unsigned waits = time_waits(port_of(&addresses[0])); /* of who had the port before */

    for (unsigned i = 1; i <= 200; i++) {
        int server;

        check_now("PING\r\n", "+PONG");
        server = sockets_accept(listening);
        sockets_hear(server, "PING\r\n");
        sockets_say(server, "+PONG\r\n");
        if (i % 2 == 0)
            UNTIL(atomic_load(&outcomes) == i);
        close(server);
        expect_nth(i, CHECK_PASSED, "passed");
    }
    close(listening);
    PAUSE_MS(20);
    ck_assert_uint_le(time_waits(port_of(&addresses[0])), waits + 40);
}

/* ---- what is ours ---- */

TEST(check, lack_of_descriptors_is_the_outcome_no_resources)
{
    sockets_loopback(&addresses[0], 9);
    process_allow_descriptors(0);
    check_now("", "");
    expect_outcome(CHECK_NO_RESOURCES, "out of descriptors or memory: Too many open files");
    process_allow_any_descriptors();
}

TEST(check, lack_of_local_ports_is_the_outcome_no_port)
{
    sockets_loopback(&addresses[0], 9);
    atomic_store(&connect_error, EADDRNOTAVAIL);
    check_now("", "");
    expect_outcome(CHECK_NO_PORT, "no local port or address to connect from");
    atomic_store(&connect_error, 0);
}

/* Check a server that refuses, from an address of another host. */
static void check_from_elsewhere(void)
{
    static union {
        struct sock_sources sources;
        uint8_t bytes[sizeof(struct sock_sources) + sizeof(struct address)];
    } from = {.sources = {.n = 1}};

    sockets_loopback(&addresses[0], 9);
    conf.connect.sock.sources = &from.sources;
    from.sources.list[0] = addresses[0];
    ck_assert_int_eq(inet_pton(AF_INET, "192.0.2.1", &from.sources.list[0].u.in.sin_addr), 1);
    check_now("", "");
}

TEST(check, missing_source_address_counts_against_the_server)
{
    check_from_elsewhere();
    expect_outcome(CHECK_NO_SOURCE, "source_address is not an address of this host");
    ck_assert_int_eq(check_verdict(CHECK_NO_SOURCE), CHECK_AGAINST);
}

TEST(check, with_freebind_a_missing_source_address_is_left_out)
{
    conf.connect.sock.freebind = true;
    check_from_elsewhere();
    expect_outcome(CHECK_REFUSED, "connection refused");
}

TEST(check, every_outcome_has_a_text_and_a_verdict)
{
    for (unsigned i = 0; i < CHECK_OUTCOMES; i++)
        ck_assert_ptr_nonnull(check_outcome_text((enum check_outcome)i));
    ck_assert_int_eq(check_verdict(CHECK_PASSED), CHECK_FOR);
    ck_assert_int_eq(check_verdict(CHECK_REFUSED), CHECK_AGAINST);
    ck_assert_int_eq(check_verdict(CHECK_ANSWER_TIMEOUT), CHECK_AGAINST);
    ck_assert_int_eq(check_verdict(CHECK_NO_PORT), CHECK_NEITHER);
    ck_assert_int_eq(check_verdict(CHECK_NO_RESOURCES), CHECK_NEITHER);
    ck_assert_int_eq(check_verdict(CHECK_CANCELLED), CHECK_NEITHER);
}

TEST(check, script_that_is_too_long_or_without_a_timeout_is_refused)
{
    static const uint8_t many[CHECK_BYTES_MAX + 1];

    conf.send = (struct check_bytes){.data = many, .len = sizeof(many)};
    ck_assert_int_eq(check_script_init(&script, &conf), -EMSGSIZE);
    conf.expect = conf.send;
    conf.send.len = CHECK_BYTES_MAX;
    ck_assert_int_eq(check_script_init(&script, &conf), -EMSGSIZE);
    conf.expect.len = CHECK_BYTES_MAX;
    prepare_script();
    conf.timeout_ns = 0;
    ck_assert_int_eq(check_script_init(&script, &conf), -EINVAL);
}

/* ---- life ---- */

static void begin_and_cancel(void *arg)
{
    begin(arg);
    cancel(arg);
}

TEST(check, check_cancelled_while_connecting_reports_it_once)
{
    int listening = sockets_listen(&addresses[0], 0), filler = sockets_connect(&addresses[0]);

    check_now("PING", "PONG");
    loop_runner_call(loop, cancel, NULL);
    expect_outcome(CHECK_CANCELLED, "cancelled");
    close(filler);
    close(listening);
}

TEST(check, check_with_an_undelivered_outcome_can_be_cancelled)
{
    sockets_path(&addresses[0], "none");
    conf.send = conf.expect = bytes("");
    prepare_script();
    loop_runner_call(loop, begin_and_cancel, NULL);
    expect_outcome(CHECK_CANCELLED, "cancelled");
}

TEST(check, check_cancelled_while_waiting_for_the_answer_reports_it_once)
{
    int listening = sockets_listen(&addresses[0], 5), server;

    check_now("PING", "PONG");
    server = sockets_accept(listening);
    sockets_hear(server, "PING");
    loop_runner_call(loop, cancel, NULL);
    expect_outcome(CHECK_CANCELLED, "cancelled");
    sockets_hear_end(server);
    close(server);
    close(listening);
}

TEST(check, cancelling_an_idle_check_does_nothing)
{
    loop_runner_call(loop, cancel, NULL);
    PAUSE_MS(20);
    ck_assert_uint_eq(atomic_load(&outcomes), 0);
}

/* Each connect only copies them. */
TEST(check, options_of_connections_are_indexed_with_the_script)
{
    struct sock_options at_once = {.nodelay = true};

    sock_options_index(&at_once);
    conf.connect.sock.options = (struct sock_options){.nodelay = true, .nodelay_later = true};
    prepare_script();
    ck_assert_uint_eq(script.conf.connect.sock.options.rows, at_once.rows);
    ck_assert(!script.conf.connect.sock.options.nodelay_later);
    conf.connect.sock.options = (struct sock_options){.nodelay = false};
}

TEST(check, check_can_be_started_again_from_its_callback)
{
    int bound = sockets_bound(&addresses[0]), listening, server;

    atomic_store(&start_again, true);
    check_now("", "");
    expect_nth(2, CHECK_REFUSED, "connection refused");
    close(bound);
    listening = sockets_listen(&addresses[0], 5);
    atomic_store(&start_again, true);
    check_now("", "PONG");
    server = sockets_accept(listening);
    sockets_say(server, "PONG");
    close(server);
    expect_nth(3, CHECK_PASSED, "passed");
    server = sockets_accept(listening);
    ck_assert_uint_eq(atomic_load(&outcomes), 3); /* nothing is left of the first answer */
    sockets_say(server, "GNOP");
    close(server);
    expect_nth(4, CHECK_WRONG_ANSWER, "wrong answer: 'GNOP'");
    close(listening);
}
