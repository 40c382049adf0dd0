/* service/session_access_log: what a line says of its client: its RTT, TLS and PROXY header. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "handlers/proxy_protocol.h"
#include "net/proxy_header.h"
#include "service/echo.h"
#include "service/session_hello.h"
#include "support/hellos.h"
#include "support/host.h"
#include "support/log_lines.h"
#include "support/logged.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "upstream/route.h"
#include "upstream/upstream.h"

GROUP(lines, NULL, logged_teardown);

static void expect_rtt_of_ended_client(const char *reason)
{
    unsigned rtt_us;
    char word[32];

    UNTIL(logged_lines() == 1);
    ck_assert_int_eq(sscanf(logged.text, "%u %31s\n", &rtt_us, word), 2);
    ck_assert_uint_gt(rtt_us, 0);
    ck_assert_str_eq(word, reason);
}

TEST(lines, client_rtt_is_asked_before_an_echo_client_is_closed)
{
    int client;

    logged_open_host(&echo_ops, "$client_rtt $reason");
    client = host_client(&logged.host);
    sockets_say(client, "hello");
    sockets_hear(client, "hello");
    close(client);
    expect_rtt_of_ended_client("client_fin");
}

TEST(lines, client_rtt_is_asked_of_a_client_that_was_reset)
{
    int client;

    logged_open_host(&echo_ops, "$client_rtt $reason");
    client = host_client(&logged.host);
    sockets_say(client, "hello");
    sockets_hear(client, "hello");
    sockets_reset(client);
    expect_rtt_of_ended_client("client_reset");
}

TEST(lines, client_rtt_is_asked_of_a_client_that_was_closed_before_its_server)
{
    int client, server;

    logged_open_proxy("$client_rtt $reason");
    client = host_client(&logged.host);
    server = sockets_accept(logged.listening);
    close(client);
    sockets_hear_end(server);
    PAUSE_MS(30);
    close(server);
    expect_rtt_of_ended_client("client_fin");
}

TEST(lines, client_rtt_is_asked_of_a_client_that_leaves_the_queue)
{
    int holder, server, client;

    logged.servers[1].max_connections = 1;
    logged.conf.queue_length = 1;
    logged.conf.queue_timeout_ns = 3600 * NS_PER_S;
    logged_open_proxy("$client_rtt $reason");
    holder = host_client(&logged.host);
    server = sockets_accept(logged.listening);
    client = host_client(&logged.host);
    UNTIL(wait_queue_length(&logged.upstream->waiting) == 1);
    sockets_reset(client);
    expect_rtt_of_ended_client("client_reset");
    close(holder);
    close(server);
}

TEST(lines, line_has_sni_and_all_alpn_protocols_of_the_client_hello)
{
    static const char *names[] = {"curl.example"};
    static const struct route_conf route = {
        .id = "a", .names = names, .n_names = 1, .upstream = "back"};
    const struct hello *h = &hellos[2];
    struct session_routes routes = {.timeout_ns = 3600 * NS_PER_S};
    uint8_t bytes[HELLO_MAX_BYTES];
    char wanted[256];
    size_t len = hello_bytes(bytes, h);
    int client, server;

    logged_open_proxy("$sni $alpn $ja4");
    ck_assert_int_eq(route_table_create(&routes.table, &route, 1, &logged.upstream), 0);
    logged.host.service.routes = &routes;
    client = host_client(&logged.host);
    sockets_say_bytes(client, (char *)bytes, len);
    server = sockets_accept(logged.listening);
    ck_assert_int_eq(recv(server, bytes, len, MSG_WAITALL), (ssize_t)len);
    shutdown(server, SHUT_WR);
    sockets_hear_end(client);
    close(client);
    close(server);
    snprintf(wanted, sizeof(wanted), "%s %s %s\n", h->sni, h->alpn, h->ja4);
    ck_assert_ptr_nonnull(strchr(h->alpn, ','));
    logged_expect(wanted);
    route_table_destroy(routes.table);
}

/* A name with a NUL is no name, and one without bytes neither. */
static const struct {
    const char *name;
    size_t len;
    const char *written;
} header_names[] = {
    {"a.example", 9, "a.example"}, {"a\0.example", 10, "-"}, {"a", 1, "a"}, {"", 0, "-"}};

TEST_EACH(lines, line_has_the_tls_values_of_the_proxy_header, ARRAY_LEN(header_names))
{
    static const struct proxy_header_conf all = {
        .version = PROXY_HEADER_V2, .alpn = true, .authority = true, .ssl = true};
    static const struct proxy_header_ssl ssl = {
        .version = "TLSv1.3", .cipher = "suite", .group = "group", .name = "client"};
    struct cidr anyone;
    const struct proxy_protocol_conf proxies = {
        .mode = PROXY_PROTOCOL_REQUIRED, .trusted = {&anyone, 1}, .timeout_ns = 3600 * NS_PER_S};
    struct proxy_protocol_gate gate = {.conf = &proxies, .listener = "test"};
    uint8_t value[256], header[PROXY_HEADER_MAX_BYTES];
    struct address peer;
    struct proxy_header_client who = {
        .source = &peer,
        .destination = &peer,
        .tls = {.alpn = {(const uint8_t *)"h2", 2},
                .authority = {(const uint8_t *)header_names[_i].name, header_names[_i].len},
                .ssl = {value, proxy_header_ssl_encode(value, sizeof(value), &ssl)}}};
    char wanted[64];
    int client;

    sockets_loopback(&peer, 1);
    ck_assert_int_eq(cidr_parse(&anyone, "127.0.0.0/8"), 0);
    logged_open_host(&echo_ops, "$sni $alpn $tls_version $tls_cipher $tls_group $tls_client_name");
    logged.host.service.proxies = &gate;
    client = host_client(&logged.host);
    sockets_say_bytes(client, (char *)header, proxy_header_encode(header, &all, &who));
    sockets_say(client, "hello");
    sockets_hear(client, "hello");
    close(client);
    snprintf(wanted, sizeof(wanted), "%s h2 TLSv1.3 suite group client\n",
             header_names[_i].written);
    logged_expect(wanted);
}
