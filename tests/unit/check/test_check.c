/*
 * check/check: one outcome for each check, whatever the server does, and nothing left behind on
 * either side.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check/check.h"
#include "support/fault.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

#define LONG_NS  (10 * NS_PER_S)
#define SHORT_NS (100 * NS_PER_MS)

static struct loop *loop;
static struct netloop *net;
static struct check check;
static struct check_conf conf;
static struct check_script script;
static struct address addresses[2];
static unsigned n_addresses;
static unsigned before;

static atomic_uint outcomes;
static struct check_result result;
static bool inside;             /* check_start() or check_cancel() */
static atomic_bool start_again; /* from done(), once */

static void begin(void *arg)
{
    (void)arg;
    inside = true;
    check_start(&check, &script, addresses, n_addresses);
    inside = false;
}

static void on_done(struct check *c)
{
    bool again = atomic_exchange(&start_again, false);

    ck_assert_ptr_eq(c, &check);
    ck_assert(loop_is_current(loop));
    ck_assert(!inside);
    result = c->result;
    if (again)
        begin(NULL);
    atomic_fetch_add(&outcomes, 1);
}

static void prepare(void *arg)
{
    (void)arg;
    check_init(&check, net, on_done);
}

static void cancel(void *arg)
{
    (void)arg;
    inside = true;
    check_cancel(&check);
    check_cancel(&check);
    inside = false;
}

static void setup(void)
{
    before = process_descriptors();
    loop = loop_runner_create();
    ck_assert_int_eq(netloop_create(&net, loop), 0);
    loop_runner_call(loop, prepare, NULL);
    n_addresses = 1;
    conf = (struct check_conf){.timeout_ns = LONG_NS};
}

static void teardown(void)
{
    loop_runner_call(loop, cancel, NULL);
    loop_runner_destroy(loop);
    netloop_destroy(net);
    ck_assert_uint_eq(process_descriptors(), before);
}

static struct check_bytes bytes(const char *text)
{
    return (struct check_bytes){.data = (const uint8_t *)text, .len = strlen(text)};
}

/* Check for an answer that has ${expect} in it, after having sent ${send}. */
static void check_now(const char *send, const char *expect)
{
    conf.send = bytes(send);
    conf.expect = bytes(expect);
    ck_assert_int_eq(check_script_init(&script, &conf), 0);
    loop_runner_call(loop, begin, NULL);
}

/* The ${n}th outcome there was, and its words. */
static void expect_nth(unsigned n, enum check_outcome outcome, const char *text)
{
    char described[CHECK_TEXT_BYTES];

    UNTIL(atomic_load(&outcomes) == n);
    ck_assert_str_eq(check_describe(described, sizeof(described), &result), text);
    ck_assert_int_eq(result.outcome, outcome);
}

static void expect_outcome(enum check_outcome outcome, const char *text)
{
    expect_nth(1, outcome, text);
    PAUSE_MS(20);
    ck_assert_uint_eq(atomic_load(&outcomes), 1);
}

static void expect_late(int64_t timeout_ns)
{
    ck_assert_int_ge(result.duration_ns, timeout_ns);
    ck_assert_int_lt(result.duration_ns, timeout_ns + 5 * NS_PER_S);
}

/* Nobody is there, and nobody comes in the next moment. */
static void expect_no_client(int listening)
{
    PAUSE_MS(100);
    ck_assert_int_eq(fcntl(listening, F_SETFL, O_NONBLOCK), 0);
    ck_assert_int_eq(accept(listening, NULL, NULL), -1);
    ck_assert_int_eq(errno, EAGAIN);
}

static unsigned port_of(const struct address *a)
{
    return ntohs(a->u.in.sin_port);
}

/* Connections to ${port} of which this host is the client, and that are in TIME_WAIT. */
static unsigned time_waits(unsigned port)
{
    FILE *f = fopen("/proc/net/tcp", "r");
    unsigned n = 0, remote, state;
    char line[256];

    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof(line), f))
        n += sscanf(line, " %*u: %*x:%*x %*x:%x %x", &remote, &state) == 2 && remote == port &&
             state == 6;
    fclose(f);
    return n;
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

static int listen_unix(struct address *a, int backlog)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    sockets_path(a, "server");
    ck_assert_int_eq(bind(fd, &a->u.sa, a->len), 0);
    ck_assert_int_eq(listen(fd, backlog), 0);
    return fd;
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
    ck_assert_int_eq(check_script_init(&script, &conf), 0);
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
    sockets_say(server, "what do you want from me? I am no redis");
    expect_outcome(CHECK_WRONG_ANSWER, "wrong answer: 'what do you want from me? I am n...'");
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

/* ---- what is ours ---- */

TEST(check, lack_of_descriptors_is_the_outcome_no_resources)
{
    sockets_loopback(&addresses[0], 9);
    process_allow_descriptors(0);
    check_now("", "");
    expect_outcome(CHECK_NO_RESOURCES, "out of descriptors or memory: Too many open files");
    process_allow_any_descriptors();
}

static atomic_int connect_error;

/* In the place of the kernel, which may be out of ports. */
int connect(int fd, __CONST_SOCKADDR_ARG addr, socklen_t len)
{
    int (*next)(int, __CONST_SOCKADDR_ARG, socklen_t) = dlsym(RTLD_NEXT, "connect");

    if (atomic_load(&connect_error) == 0)
        return next(fd, addr, len);
    errno = atomic_load(&connect_error);
    return -1;
}

TEST(check, lack_of_local_ports_is_the_outcome_no_port)
{
    sockets_loopback(&addresses[0], 9);
    atomic_store(&connect_error, EADDRNOTAVAIL);
    check_now("", "");
    expect_outcome(CHECK_NO_PORT, "no local port or address to connect from");
    atomic_store(&connect_error, 0);
}

TEST(check, missing_source_address_counts_against_the_server)
{
    sockets_loopback(&addresses[0], 9);
    conf.connect.sock.source_ipv4 = addresses[0];
    ck_assert_int_eq(inet_pton(AF_INET, "192.0.2.1", &conf.connect.sock.source_ipv4.u.in.sin_addr),
                     1);
    check_now("", "");
    expect_outcome(CHECK_NO_SOURCE, "source_address is not an address of this host");
    ck_assert_int_eq(check_verdict(CHECK_NO_SOURCE), CHECK_AGAINST);
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
    ck_assert_int_eq(check_script_init(&script, &conf), 0);
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
    ck_assert_int_eq(check_script_init(&script, &conf), 0);
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
