/* check/check: the answer of a server, whole, in pieces, wrong, late or none. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check/check.h"
#include "support/fault.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "unit/check/check_peer.h"

GROUP(check, setup, teardown);

TEST(check, the_right_answer_passes_and_the_server_reads_a_clean_end)
{
    int listening = sockets_listen(&addresses[0], 5), server;
    unsigned waits = time_waits(port_of(&addresses[0])); /* of who had the port before */

    check_now("PING\r\n", "+PONG");
    server = sockets_accept(listening);
    sockets_hear(server, "PING\r\n");
    sockets_say(server, "+PONG\r\n");
    expect_outcome(CHECK_PASSED, "passed");
    sockets_hear_end(server);
    close(server);
    close(listening);
    PAUSE_MS(20);
    ck_assert_uint_le(time_waits(port_of(&addresses[0])), waits);
}

TEST(check, unix_server_gets_the_request)
{
    int listening = listen_unix(&addresses[0], 5), server;

    check_now("PING", "PONG");
    server = sockets_accept(listening);
    sockets_hear(server, "PING");
    sockets_say(server, "PONG");
    expect_outcome(CHECK_PASSED, "passed");
    sockets_hear_end(server);
    close(server);
    close(listening);
    unlink(addresses[0].u.un.sun_path);
}

TEST(check, server_that_sends_first_needs_no_request)
{
    int listening = sockets_listen(&addresses[0], 5), server;

    check_now("", "220 ");
    server = sockets_accept(listening);
    sockets_say(server, "220 mx ready\r\n");
    expect_outcome(CHECK_PASSED, "passed");
    close(server);
    close(listening);
}

TEST(check, answer_may_arrive_byte_by_byte_behind_other_bytes)
{
    static const char answer[] = "role:rrole:slave role:masrole:master!";
    int listening = sockets_listen(&addresses[0], 5), server;

    check_now("INFO\r\n", "role:master");
    server = sockets_accept(listening);
    for (const char *at = answer; *at != '!'; at++) {
        char one[2] = {*at};

        ck_assert_uint_eq(atomic_load(&outcomes), 0);
        sockets_say(server, one);
        PAUSE_MS(2);
    }
    expect_outcome(CHECK_PASSED, "passed");
    ck_assert_uint_eq(result.answer_bytes, strlen(answer) - 1);
    close(server);
    close(listening);
}

/* A text of up to ${most} letters, of which there are only two. */
static void draw_text(char *text, unsigned most)
{
    unsigned len = 1 + (unsigned)rand() % most;

    for (unsigned i = 0; i < len; i++)
        text[i] = "ab"[rand() % 2];
    text[len] = '\0';
}

/* Say ${answer} and end; is ${expect} found in it? */
static bool is_found(int listening, const char *expect, const char *answer)
{
    unsigned n = atomic_load(&outcomes);
    int server;

    check_now("", expect);
    server = sockets_accept(listening);
    sockets_say(server, answer);
    close(server);
    UNTIL(atomic_load(&outcomes) == n + 1);
    return result.outcome == CHECK_PASSED;
}

TEST(check, expected_bytes_are_found_at_any_offset_and_not_falsely)
{
    int listening = listen_unix(&addresses[0], 5);
    char expect[10], answer[50];

    srand(1);
    for (unsigned i = 0; i < 400; i++) {
        draw_text(expect, 8);
        draw_text(answer, 40);
        ck_assert_int_eq(is_found(listening, expect, answer), strstr(answer, expect) != NULL);
    }
    /*
     * Where it takes two steps back to what has matched nevertheless; in the script, and in the
     * answer.
     */
    ck_assert(is_found(listening, "aabaaaX", "aabaaabaaaX"));
    ck_assert(is_found(listening, "abaabaX", "abaababaabaX"));
    close(listening);
    unlink(addresses[0].u.un.sun_path);
}

TEST(check, a_script_is_whole_whatever_its_memory_held)
{
    int listening = listen_unix(&addresses[0], 5);

    memset(&script, 1, sizeof(script));
    script.memory = NULL; /* for prepare_script() */
    ck_assert(is_found(listening, "aab", "aaab"));
    close(listening);
    unlink(addresses[0].u.un.sun_path);
}

TEST(check, any_byte_can_be_sent_and_expected)
{
    static const uint8_t all[] = {0, 255, '\n', 0, 128};
    int listening = sockets_listen(&addresses[0], 5), server;
    uint8_t heard[sizeof(all)];

    conf.send = conf.expect = (struct check_bytes){.data = all, .len = sizeof(all)};
    prepare_script();
    loop_runner_call(loop, begin, NULL);
    server = sockets_accept(listening);
    ck_assert_int_eq(recv(server, heard, sizeof(heard), MSG_WAITALL), sizeof(heard));
    ck_assert_mem_eq(heard, all, sizeof(all));
    ck_assert_int_eq(send(server, all, sizeof(all), 0), sizeof(all));
    expect_outcome(CHECK_PASSED, "passed");
    close(server);
    close(listening);
}

TEST(check, an_answer_that_ends_without_the_expected_bytes_is_wrong)
{
    int listening = sockets_listen(&addresses[0], 5), server;

    check_now("PING\r\n", "+PONG");
    server = sockets_accept(listening);
    sockets_hear(server, "PING\r\n");
    sockets_say(server, "-ERR\r\n");
    sockets_end(server);
    expect_outcome(CHECK_WRONG_ANSWER, "wrong answer: '-ERR\r\n'");
    close(server);
    close(listening);
}

TEST(check, a_wrong_answer_that_does_not_end_is_wrong_when_the_time_is_over)
{
    int listening = sockets_listen(&addresses[0], 5), server;

    conf.timeout_ns = SHORT_NS;
    check_now("PING", "PONG");
    server = sockets_accept(listening);
    sockets_say(server, "what do you want from me? I am no redis and have never been one, I know");
    expect_outcome(CHECK_WRONG_ANSWER, "wrong answer: 'what do you want from me? I am no redis and "
                                       "have never been one,...'");
    expect_late(SHORT_NS);
    sockets_hear(server, "PING");
    sockets_hear_end(server);
    close(server);
    close(listening);
}

TEST(check, half_an_answer_times_out)
{
    int listening = sockets_listen(&addresses[0], 5), server;

    conf.timeout_ns = NS_PER_S; /* in which the half comes, on a busy machine too */
    check_now("PING", "+PONG");
    server = sockets_accept(listening);
    sockets_say(server, "+PO");
    expect_outcome(CHECK_ANSWER_TIMEOUT, "timed out waiting for the answer: '+PO'");
    expect_late(NS_PER_S);
    close(server);
    close(listening);
}

TEST(check, a_server_that_accepts_and_never_answers_times_out)
{
    int listening = sockets_listen(&addresses[0], 5), server;

    conf.timeout_ns = SHORT_NS;
    check_now("PING", "PONG");
    server = sockets_accept(listening);
    expect_outcome(CHECK_ANSWER_TIMEOUT, "timed out waiting for the answer");
    expect_late(SHORT_NS);
    close(server);
    close(listening);
}

TEST(check, a_server_that_does_not_even_accept_times_out_waiting_for_the_answer)
{
    int listening = sockets_listen(&addresses[0], 5);

    conf.timeout_ns = SHORT_NS;
    check_now("", "220");
    expect_outcome(CHECK_ANSWER_TIMEOUT, "timed out waiting for the answer");
    close(listening);
}

TEST(check, an_end_before_the_answer_fails)
{
    int listening = sockets_listen(&addresses[0], 5), server;

    check_now("PING", "PONG");
    server = sockets_accept(listening);
    sockets_hear(server, "PING");
    close(server);
    expect_outcome(CHECK_CLOSED, "closed before the answer");
    close(listening);
}

TEST(check, a_reset_after_the_accept_fails)
{
    int listening = sockets_listen(&addresses[0], 5);

    check_now("", "PONG");
    sockets_reset(sockets_accept(listening));
    expect_outcome(CHECK_RESET, "connection reset");
    close(listening);
}

TEST(check, endless_wrong_answer_fails_before_the_timeout)
{
    int listening = sockets_listen(&addresses[0], 5), server;

    conf.timeout_ns = 100 * UNTIL_LIMIT_NS; /* at its timeout the answer would be wrong, too */
    check_now("", "PONG");
    server = sockets_accept(listening);
    sockets_say_pattern(server, 0, CHECK_ANSWER_MAX_BYTES);
    UNTIL(atomic_load(&outcomes) == 1);
    ck_assert_int_eq(result.outcome, CHECK_WRONG_ANSWER);
    ck_assert_uint_ge(result.answer_bytes, CHECK_ANSWER_MAX_BYTES);
    close(server);
    close(listening);
}

/* ---- sending ---- */

TEST(check, request_is_sent_completely_when_the_socket_is_full_at_first)
{
    int listening = sockets_listen(&addresses[0], 5), server;

    fault_plan(FAULT_SEND, 0, 2, EAGAIN);
    check_now("PING\r\n", "PONG");
    server = sockets_accept(listening);
    sockets_hear(server, "PING\r\n");
    sockets_say(server, "PONG");
    expect_outcome(CHECK_PASSED, "passed");
    close(server);
    close(listening);
}

/* The longest there may be, with a socket that takes it at once, or not. */
TEST_EACH(check, with_nothing_to_expect_a_check_passes_when_all_is_sent, 2)
{
    static char text[CHECK_BYTES_MAX + 1], heard[CHECK_BYTES_MAX];
    int listening = sockets_listen(&addresses[0], 5), server;

    memset(text, 'x', CHECK_BYTES_MAX);
    fault_plan(FAULT_SEND, 0, _i ? 3 : 0, EAGAIN);
    check_now(text, "");
    expect_outcome(CHECK_PASSED, "passed");
    server = sockets_accept(listening);
    ck_assert_int_eq(recv(server, heard, sizeof(heard), MSG_WAITALL), sizeof(heard));
    ck_assert_mem_eq(heard, text, sizeof(heard));
    sockets_hear_end(server);
    close(server);
    close(listening);
}

TEST(check, request_that_cannot_be_sent_completely_times_out)
{
    int listening = sockets_listen(&addresses[0], 5);

    conf.timeout_ns = SHORT_NS;
    fault_plan(FAULT_SEND, 0, FAULT_ALWAYS, EAGAIN);
    check_now("PING", "");
    expect_outcome(CHECK_ANSWER_TIMEOUT, "timed out waiting for the answer");
    expect_late(SHORT_NS);
    fault_plan(FAULT_SEND, 0, 0, 0);
    close(listening);
}

static const struct {
    const char *expect;
    int error;
    enum check_outcome outcome;
    const char *text;
} send_errors[] = {
    {"", ECONNRESET, CHECK_RESET, "connection reset"},
    {"", EPIPE, CHECK_CLOSED, "closed before the answer"},
    {"", ENOMEM, CHECK_NO_RESOURCES, "out of descriptors or memory: Cannot allocate memory"},
    {"PONG", ENOBUFS, CHECK_NO_RESOURCES,
     "out of descriptors or memory: No buffer space available"},
    {"PONG", EHOSTUNREACH, CHECK_UNREACHABLE, "cannot be reached: No route to host"},
};

TEST_EACH(check, send_error_is_the_outcome, ARRAY_LEN(send_errors))
{
    int listening = sockets_listen(&addresses[0], 5);

    fault_plan(FAULT_SEND, 0, 1, send_errors[_i].error);
    check_now("PING", send_errors[_i].expect);
    expect_outcome(send_errors[_i].outcome, send_errors[_i].text);
    close(listening);
}

TEST(check, answer_counts_even_if_the_request_cannot_be_sent)
{
    int listening = sockets_listen(&addresses[0], 5), server;

    fault_plan(FAULT_SEND, 0, 1, EPIPE);
    check_now("PING", "busy");
    server = sockets_accept(listening);
    ck_assert_int_eq(write(server, "busy", 4), 4); /* the fault is not for us */
    expect_outcome(CHECK_PASSED, "passed");
    close(server);
    close(listening);
}
