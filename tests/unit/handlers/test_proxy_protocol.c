/* handlers/proxy_protocol: the header comes first, whatever it comes with, and then it is gone. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "handlers/proxy_protocol.h"
#include "service/echo.h"
#include "service/proxy.h"
#include "support/fault.h"
#include "support/host.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "upstream/upstream.h"

#define LINE        "PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n"
#define MARK        "\r\n\r\n\0\r\nQUIT\n"
#define BYTES(text) text, sizeof(text) - 1

static struct host host;
static struct cidr trusted;
static struct proxy_protocol_conf conf = {.trusted = {&trusted, 1}, .timeout_ns = 3600 * NS_PER_S};
static struct proxy_protocol_gate gate = {.conf = &conf, .listener = "test"};
static unsigned before;
static int client;

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_DEBUG);
    before = process_descriptors();
    ck_assert_int_eq(cidr_parse(&trusted, "127.0.0.0/8"), 0);
    host_open(&host, &echo_ops, NULL);
    host.service.proxies = &gate;
    conf.mode = PROXY_PROTOCOL_REQUIRED;
    conf.timeout_ns = 3600 * NS_PER_S;
    client = -1;
}

static void teardown(void)
{
    host_close(&host);
    if (client >= 0)
        close(client);
    ck_assert_uint_eq(process_descriptors(), before);
}

static const struct {
    const char *data;
    size_t len;
    const char *peer; /* whom the session takes the client for */
} headers[] = {
    {BYTES(LINE), "192.0.2.1:56324"},
    {BYTES("PROXY TCP6 2001:db8::1 2001:db8::2 7 8\r\n"), "[2001:db8::1]:7"},
    {BYTES("PROXY UNKNOWN\r\n"), "127.0.0.1:12345"},
    {BYTES(MARK "\x21\x11\0\x0c\300\0\2\1\306\63\144\1\xdc\x04\x01\xbb"), "192.0.2.1:56324"},
    {BYTES(MARK "\x20\0\0\0"), "127.0.0.1:12345"},
};

GROUP(an_echo, setup, teardown);

/*
 * One session for each place where the header can be cut, and one for each where what follows
 * begins.
 */
TEST_EACH(an_echo, client_address_and_bytes_are_whole_at_each_split_of_the_header,
          ARRAY_LEN(headers))
{
    char end[128];

    snprintf(end, sizeof(end), "%s ended: client fin, 5 bytes in, 5 bytes out", headers[_i].peer);
    for (size_t cut = 1; cut <= headers[_i].len + 4; cut++) {
        char all[300];
        size_t len = headers[_i].len + 5;

        memcpy(all, headers[_i].data, headers[_i].len);
        memcpy(all + headers[_i].len, "hello", 5);
        client = host_client(&host);
        sockets_say_bytes(client, all, cut);
        usleep(1000);
        sockets_say_bytes(client, all + cut, len - cut);
        sockets_hear(client, "hello");
        sockets_end(client);
        sockets_hear_end(client);
        close(client);
        host_expect_end(&host, SESSION_CLIENT_FIN);
        EXPECT_LOG_LINES(end, cut);
    }
    client = -1;
}

static void do_held(void *arg)
{
    *(size_t *)arg = session_held_bytes(LIST_FIRST(&host.sessions, struct session, link));
}

static bool holds(void)
{
    size_t bytes;

    loop_runner_call(host.loop, do_held, &bytes);
    return bytes > 0;
}

TEST(an_echo, a_single_byte_behind_the_second_part_of_a_header_is_the_clients)
{
    client = host_client(&host);
    sockets_say_bytes(client, LINE, 10);
    UNTIL(holds());
    sockets_say(client, &(LINE "x")[10]);
    sockets_hear(client, "x");
}

TEST(an_echo, no_handler_sees_the_proxy_for_the_client)
{
    host_pipeline(&host, "log", NULL);
    client = host_client(&host);
    sockets_say(client, LINE "hello");
    sockets_hear(client, "hello");
    EXPECT_LOG_LINES("192.0.2.1:56324 active", 1);
    EXPECT_LOG_LINES("192.0.2.1:56324 read: 5 bytes", 1);
    ck_assert_uint_eq(log_lines_with("127.0.0.1:12345 active"), 0);
    EXPECT_LOG_LINES("read: ", 1);
    EXPECT_LOG_LINES("192.0.2.1:56324 is the client of the proxy 127.0.0.1:12345", 1);
}

TEST(an_echo, other_handlers_are_not_started_before_the_header)
{
    host_pipeline(&host, "log", NULL);
    client = host_client(&host);
    sockets_reset(client);
    client = -1;
    host_expect_end(&host, SESSION_CLIENT_RESET);
    ck_assert_uint_eq(log_lines_with(" closed: "), 0);
    ck_assert_uint_eq(log_lines_with(" active"), 0);
}

TEST(an_echo, long_stream_after_the_header_is_whole_and_spliced)
{
    host.conf.splice = SPLICE_ON;
    client = host_client(&host);
    sockets_say(client, LINE);
    for (unsigned i = 0; i < 64; i++) {
        sockets_say_pattern(client, i * 50000, 50000);
        sockets_hear_pattern(client, i * 50000, 50000);
    }
    ck_assert_uint_gt(fault_calls(FAULT_SPLICE), 0);
}

TEST(an_echo, malformed_header_resets_the_client_and_is_an_error)
{
    client = host_client(&host);
    sockets_say(client, "GET / HTTP/1.0\r\n\r\n");
    sockets_hear_reset(client);
    host_expect_end(&host, SESSION_ERROR);
    EXPECT_LOG_LINES("127.0.0.1:12345: sent no PROXY header; the client is reset", 1);
}

TEST(an_echo, half_a_header_and_an_end_is_an_error)
{
    client = host_client(&host);
    sockets_say(client, "PROXY TCP4 ");
    sockets_end(client);
    sockets_hear_reset(client);
    host_expect_end(&host, SESSION_ERROR);
}

TEST(an_echo, client_that_closes_without_a_byte_is_not_logged)
{
    client = host_client(&host);
    sockets_end(client);
    sockets_hear_end(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
    ck_assert_uint_eq(log_lines_with("PROXY header"), 0);
}

TEST(an_echo, header_that_misses_its_timeout_resets_the_client)
{
    int64_t began_at_ns = clock_now_ns();

    conf.timeout_ns = 100 * NS_PER_MS;
    client = host_client(&host);
    sockets_say(client, "PROXY ");
    sockets_hear_reset(client);
    ck_assert_int_ge(clock_now_ns() - began_at_ns, 100 * NS_PER_MS);
    host_expect_end(&host, SESSION_IDLE);
}

static const struct {
    const char *said, *peer;
    bool waits; /* for more, until time is over */
} optional[] = {
    {LINE "x", "192.0.2.1:56324", false},    {"x", "127.0.0.1:12345", false},
    {"PROXIMITY", "127.0.0.1:12345", false}, {"PROX", "127.0.0.1:12345", true},
    {"\r\n", "127.0.0.1:12345", true},
};

TEST_EACH(an_echo, optional_header_that_is_missing_leaves_the_bytes_to_the_client,
          ARRAY_LEN(optional))
{
    const char *echo =
        strncmp(optional[_i].said, LINE, strlen(LINE)) == 0 ? "x" : optional[_i].said;
    char end[128];

    conf.mode = PROXY_PROTOCOL_OPTIONAL;
    conf.timeout_ns = optional[_i].waits ? 50 * NS_PER_MS : 3600 * NS_PER_S;
    client = host_client(&host);
    sockets_say(client, optional[_i].said);
    sockets_hear(client, echo);
    sockets_say(client, "more");
    sockets_hear(client, "more");
    sockets_end(client);
    sockets_hear_end(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
    snprintf(end, sizeof(end), "%s ended: client fin, %zu bytes in", optional[_i].peer,
             strlen(echo) + 4);
    EXPECT_LOG_LINES(end, 1);
}

TEST(an_echo, optional_header_cut_short_by_end_of_file_is_data_without_a_timeout)
{
    conf.mode = PROXY_PROTOCOL_OPTIONAL;
    client = host_client(&host);
    sockets_say(client, "PROX");
    sockets_end(client);
    sockets_hear(client, "PROX");
    sockets_hear_end(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
}

TEST(an_echo, optional_header_that_has_begun_must_be_valid)
{
    conf.mode = PROXY_PROTOCOL_OPTIONAL;
    client = host_client(&host);
    sockets_say(client, "PROXY TCP9");
    sockets_hear_reset(client);
    host_expect_end(&host, SESSION_ERROR);
}

TEST(an_echo, untrusted_client_is_refused_or_its_bytes_are_data)
{
    struct address peer;

    sockets_loopback(&peer, 1);
    ck_assert_int_eq(proxy_protocol_expect(NULL, &peer), PROXY_PROTOCOL_PASS);
    ck_assert_int_eq(proxy_protocol_expect(&gate, &peer), PROXY_PROTOCOL_READ);
    ck_assert_int_eq(cidr_parse(&trusted, "unix"), 0);
    ck_assert_int_eq(proxy_protocol_expect(&gate, &peer), PROXY_PROTOCOL_REFUSE);
    EXPECT_LOG_LINES("127.0.0.1:1: not a trusted proxy; the client is reset", 1);
    conf.mode = PROXY_PROTOCOL_OPTIONAL;
    ck_assert_int_eq(proxy_protocol_expect(&gate, &peer), PROXY_PROTOCOL_PASS);
    client = host_client(&host);
    sockets_say(client, LINE);
    sockets_hear(client, LINE);
}

TEST_EACH(an_echo, a_session_can_be_ended_while_the_header_is_awaited, 2)
{
    client = host_client(&host);
    sockets_say(client, "PROXY ");
    if (_i == 0)
        host_drain(&host); /* an echo that is quiet ends then */
    else
        host_abort(&host, SESSION_DRAIN);
    host_expect_end(&host, SESSION_DRAIN);
}

TEST(an_echo, the_first_byte_is_awaited_from_the_header_on)
{
    host.conf.first_byte_timeout_ns = 100 * NS_PER_MS;
    client = host_client(&host);
    usleep(200 * 1000);
    sockets_say(client, LINE);
    sockets_hear_end(client);
    host_expect_end(&host, SESSION_IDLE);
    EXPECT_LOG_LINES("192.0.2.1:56324 ended: idle, 0 bytes in", 1);
}

TEST(an_echo, only_the_values_of_tls_are_kept_of_a_trimmed_header)
{
    static const uint8_t tlvs[] = "\4\0\3\0\0\0\2\0\1a\xea\0\4vpce\1\0\2h2";
    struct proxy_protocol pp = {.header.tlvs.n = sizeof(tlvs) - 1};
    struct proxy_header_tls *tls = &pp.header.tls;

    pp.header.tlvs.at = pp.told = malloc(sizeof(tlvs) - 1);
    memcpy(pp.told, tlvs, sizeof(tlvs) - 1);
    tls->authority = proxy_header_tlv_find(pp.header.tlvs, 0x02);
    tls->alpn = proxy_header_tlv_find(pp.header.tlvs, 0x01);
    proxy_protocol_trim(&pp);
    proxy_protocol_trim(&pp);
    ck_assert_mem_eq(pp.told, "h2a", 3);
    ck_assert_ptr_eq(tls->alpn.at, pp.told);
    ck_assert_ptr_eq(tls->authority.at, pp.told + 2);
    ck_assert_ptr_null(proxy_header_tlv_find(pp.header.tlvs, 0xea).at);
    proxy_protocol_free(&pp);
}

TEST(an_echo, nothing_is_kept_of_a_trimmed_header_without_values_of_tls)
{
    struct proxy_protocol pp = {.header.tlvs.n = 3};

    pp.header.tlvs.at = pp.told = calloc(1, 3);
    proxy_protocol_trim(&pp);
    ck_assert_ptr_null(pp.told);
}

/* ---- in front of a proxy, which looks for a server only then ---- */

static struct address address;
static struct upstream_server_conf server_conf = {
    .id = "a", .address_text = "there", .addresses = &address, .n_addresses = 1, .weight = 1};
static struct upstream_conf up_conf = {
    .name = "back", .servers = &server_conf, .n_servers = 1, .connect_timeout_ns = 5 * NS_PER_S};
static struct upstream *upstream;
static int listening, server;

static void setup_proxy(void)
{
    setup();
    listening = sockets_listen(&address, 64);
    up_conf.send_proxy = (struct proxy_header_conf){.version = PROXY_HEADER_NONE};
    ck_assert_int_eq(upstream_create(&upstream, &up_conf, NULL), 0);
    host.service.ops = &proxy_ops;
    host.service.upstream = upstream;
    server = -1;
}

static void teardown_proxy(void)
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

GROUP(a_proxy, setup_proxy, teardown_proxy);

TEST(a_proxy, no_server_is_chosen_before_the_header)
{
    client = host_client(&host);
    sockets_say(client, "PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r");
    usleep(50 * 1000);
    ck_assert_uint_eq(atomic_load(&upstream->counters.began), 0);
    sockets_say(client, "\nhello");
    server = sockets_accept(listening);
    sockets_hear(server, "hello");
    ck_assert_uint_eq(atomic_load(&upstream->counters.began), 1);
}

TEST(a_proxy, server_gets_the_addresses_of_the_header)
{
    up_conf.send_proxy.version = PROXY_HEADER_V1;
    client = host_client(&host);
    sockets_say(client, LINE "hello");
    sockets_end(client);
    server = sockets_accept(listening);
    sockets_hear(server, LINE "hello");
    sockets_hear_end(server);
    sockets_say(server, "bye");
    sockets_hear(client, "bye");
}

TEST(a_proxy, bytes_behind_the_header_wait_for_the_server)
{
    char bytes[60000];

    memset(bytes, 'x', sizeof(bytes));
    client = host_client(&host);
    sockets_say(client, LINE);
    sockets_say_bytes(client, bytes, sizeof(bytes));
    sockets_say(client, "end");
    server = sockets_accept(listening);
    for (size_t got = 0; got < sizeof(bytes);) {
        ssize_t n = recv(server, bytes, sizeof(bytes) - got, 0);

        ck_assert_int_gt(n, 0);
        for (ssize_t i = 0; i < n; i++)
            ck_assert_int_eq(bytes[i], 'x');
        got += (size_t)n;
    }
    sockets_hear(server, "end");
}

TEST(a_proxy, partially_sent_header_precedes_the_stream)
{
    char line[128], to[ADDRESS_TEXT_BYTES];
    struct address ours;

    up_conf.send_proxy.version = PROXY_HEADER_V1;
    host.service.proxies = NULL;
    fault_plan(FAULT_SEND, 0, 3, EAGAIN); /* nobody else sends before */
    client = host_client(&host);
    server = sockets_accept(listening);
    ours.len = sizeof(ours.u);
    ck_assert_int_eq(getpeername(client, &ours.u.sa, &ours.len), 0);
    address_format(to, sizeof(to), &ours);
    snprintf(line, sizeof(line), "PROXY TCP4 127.0.0.1 127.0.0.1 12345 %s\r\n",
             strrchr(to, ':') + 1);
    sockets_hear(server, line);
    sockets_say(client, "hello");
    sockets_hear(server, "hello");
    ck_assert_uint_ge(fault_calls(FAULT_SEND), 4);
}

TEST_EACH(a_proxy, server_that_does_not_take_the_header_ends_the_session, 2)
{
    up_conf.send_proxy.version = PROXY_HEADER_V2;
    host.service.proxies = NULL;
    fault_plan(FAULT_SEND, 0, FAULT_ALWAYS, _i == 0 ? EPIPE : ENOBUFS);
    client = host_client(&host);
    server = sockets_accept(listening);
    close(server);
    server = -1;
    UNTIL(atomic_load(&host.ended) == 1);
    ck_assert_int_eq(atomic_load(&host.reason), _i == 0 ? SESSION_UPSTREAM_RESET : SESSION_ERROR);
    fault_plan(FAULT_SEND, 0, 0, 0);
}

TEST(a_proxy, refused_server_does_not_lose_the_bytes_of_the_client)
{
    close(listening);
    listening = sockets_bound(&address);
    client = host_client(&host);
    sockets_say(client, LINE "hello");
    sockets_hear_reset(client);
    host_expect_end(&host, SESSION_CONNECT_REFUSED);
    EXPECT_LOG_LINES("192.0.2.1:56324 ended: connect refused, 5 bytes in", 1);
}
