/* service/session_hello: a ClientHello chooses the server, which gets all its bytes. */
#include <string.h>
#include <unistd.h>

#include "handlers/proxy_protocol.h"
#include "limits/admission.h"
#include "service/proxy.h"
#include "service/session_hello.h"
#include "support/hellos.h"
#include "support/host.h"
#include "support/log_lines.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "upstream/route.h"
#include "upstream/upstream.h"

#define HEADER "PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n"

static struct host host;
static struct cidr trusted;
static const struct proxy_protocol_conf proxies = {
    .mode = PROXY_PROTOCOL_OPTIONAL, .trusted = {&trusted, 1}, .timeout_ns = 3600 * NS_PER_S};
static struct proxy_protocol_gate gate = {.conf = &proxies, .listener = "test"};
static const char *names[] = {"*.a.example", "chrome.example"};
static const struct route_conf route = {
    .id = "a", .names = names, .n_names = ARRAY_LEN(names), .upstream = "back"};
static struct route_first ssh = {(const uint8_t *)"SSH-", 4};
static struct cidr loopback = {.len = 4, .bits = 8, .host = {127}};
static const struct route_conf of_ssh = {
    .id = "ssh", .first = &ssh, .n_first = 1, .upstream = "back"};
static const struct route_conf of_address = {
    .id = "src", .clients = {&loopback, 1}, .upstream = "back"};
static struct session_routes routes;
static struct address address;
static struct upstream_server_conf server_conf = {
    .id = "a", .address_text = "there", .addresses = &address, .n_addresses = 1, .weight = 1};
static struct upstream_conf upstream_conf = {
    .name = "back", .servers = &server_conf, .n_servers = 1, .connect_timeout_ns = 5 * NS_PER_S};
static struct upstream *upstream;
static int listening, client, server;
static unsigned before;
static uint8_t chrome[HELLO_MAX_BYTES];
static size_t chrome_bytes;

static void setup(void)
{
    before = process_descriptors();
    log_lines_capture(LOG_LEVEL_INFO);
    ck_assert_int_eq(cidr_parse(&trusted, "127.0.0.0/8"), 0);
    listening = sockets_listen(&address, 16);
    ck_assert_int_eq(upstream_create(&upstream, &upstream_conf, NULL), 0);
    ck_assert_int_eq(route_table_create(&routes.table, &route, 1, &upstream), 0);
    routes.timeout_ns = 3600 * NS_PER_S;
    host_open(&host, &proxy_ops, NULL);
    host.service.routes = &routes;
    chrome_bytes = hello_bytes(chrome, &hellos[HELLOS - 1]);
    client = server = -1;
}

static void teardown(void)
{
    if (client >= 0)
        close(client);
    if (server >= 0)
        close(server);
    host_close(&host);
    route_table_destroy(routes.table);
    upstream_destroy(upstream);
    close(listening);
    ck_assert_uint_eq(process_descriptors(), before);
}

static void expect_bytes(int fd, const uint8_t *data, size_t len)
{
    uint8_t got[7 * HELLO_MAX_BYTES];

    for (size_t n = 0; n < len;) {
        ssize_t more = read(fd, got + n, len - n);

        ck_assert_int_gt(more, 0);
        n += (size_t)more;
    }
    ck_assert_mem_eq(got, data, len);
}

GROUP(a_hello, setup, teardown);

/* 0: alone; 1: optional PROXY headers, none sent; 2: behind a PROXY header. */
TEST_EACH(a_hello, server_gets_all_bytes_at_each_split_of_the_hello, 3)
{
    host.service.proxies = _i > 0 ? &gate : NULL;
    for (size_t first = 1; first < chrome_bytes; first += 217) {
        client = host_client(&host);
        if (_i == 2)
            sockets_say(client, HEADER);
        sockets_say_bytes(client, (char *)chrome, first);
        usleep(1000);
        sockets_say_bytes(client, (char *)chrome + first, chrome_bytes - first);
        sockets_say(client, "more");
        server = sockets_accept(listening);
        expect_bytes(server, chrome, chrome_bytes);
        sockets_hear(server, "more");
        sockets_say(server, "answer");
        sockets_hear(client, "answer");
        close(client);
        sockets_hear_end(server);
        close(server);
        client = server = -1;
        host_expect_end(&host, SESSION_CLIENT_FIN);
    }
}

TEST(a_hello, records_of_one_byte_are_passed_on_unchanged)
{
    uint8_t divided[6 * HELLO_MAX_BYTES];
    size_t n = hello_in_records(divided, chrome, chrome_bytes, 1);

    client = host_client(&host);
    sockets_say_bytes(client, (char *)divided, n);
    sockets_end(client);
    server = sockets_accept(listening);
    expect_bytes(server, divided, n);
    sockets_hear_end(server);
}

TEST(a_hello, no_server_is_chosen_before_the_hello_is_whole)
{
    client = host_client(&host);
    sockets_say_bytes(client, (char *)chrome, chrome_bytes - 1);
    usleep(50 * 1000);
    ck_assert_uint_eq(atomic_load(&upstream->counters.began), 0);
    sockets_say_bytes(client, (char *)chrome + chrome_bytes - 1, 1);
    server = sockets_accept(listening);
    expect_bytes(server, chrome, chrome_bytes);
}

static void expect_refused(enum session_reason reason, const char *line)
{
    sockets_hear_reset(client);
    close(client);
    client = -1;
    host_expect_end(&host, reason);
    ck_assert_uint_eq(atomic_load(&upstream->counters.began), 0);
    ck_assert_msg(log_lines_with(line) == 1, "%s", line);
}

TEST(a_hello, client_that_sends_no_hello_is_reset)
{
    client = host_client(&host);
    sockets_say(client, "GET / HTTP/1.1\r\n\r\n");
    expect_refused(SESSION_ERROR,
                   "client 127.0.0.1:12345: sent no TLS ClientHello; the client is reset");
}

TEST(a_hello, client_that_closes_within_the_hello_is_reset)
{
    client = host_client(&host);
    sockets_say_bytes(client, (char *)chrome, 100);
    sockets_end(client);
    expect_refused(SESSION_ERROR, "sent a broken ClientHello; the client is reset");
}

TEST(a_hello, client_whose_hello_is_late_is_reset)
{
    routes.timeout_ns = 50 * NS_PER_MS;
    client = host_client(&host);
    sockets_say_bytes(client, (char *)chrome, 100);
    expect_refused(SESSION_IDLE, "sent no complete ClientHello in time");
}

TEST(a_hello, a_client_without_a_route_is_reset)
{
    uint8_t curl[HELLO_MAX_BYTES];

    client = host_client(&host);
    sockets_say_bytes(client, (char *)curl, hello_bytes(curl, &hellos[2]));
    expect_refused(SESSION_NO_ROUTE, "for curl.example: no route has the server name and protocol");
}

TEST(a_hello, a_client_without_a_name_is_reset)
{
    uint8_t openssl[HELLO_MAX_BYTES];

    client = host_client(&host);
    sockets_say_bytes(client, (char *)openssl, hello_bytes(openssl, &hellos[1]));
    expect_refused(SESSION_NO_ROUTE,
                   "sent no host name as server name, and no route matches without one");
}

TEST(a_hello, without_a_route_the_upstream_of_the_listener_is_used)
{
    uint8_t curl[HELLO_MAX_BYTES];
    size_t n = hello_bytes(curl, &hellos[2]);

    host.service.upstream = upstream;
    client = host_client(&host);
    sockets_say_bytes(client, (char *)curl, n);
    server = sockets_accept(listening);
    expect_bytes(server, curl, n);
}

TEST(a_hello, client_that_connects_and_closes_is_no_error)
{
    client = host_client(&host);
    sockets_end(client);
    sockets_hear_end(client);
    close(client);
    client = -1;
    host_expect_end(&host, SESSION_CLIENT_FIN);
    ck_assert_uint_eq(log_lines_with("ClientHello"), 0);
}

/* 0: other routes; 1: none any more, and an upstream. */
TEST_EACH(a_hello, settings_at_the_end_of_the_hello_apply, 2)
{
    static const struct route_conf other = {.id = "b", .upstream = "back"};
    struct session_routes next = {.timeout_ns = 3600 * NS_PER_S};
    struct service service = host.service;

    ck_assert_int_eq(route_table_create(&next.table, &other, 1, &upstream), 0);
    service.routes = _i == 0 ? &next : NULL;
    service.upstream = _i == 0 ? NULL : upstream;
    names[1] = "nothing.example";
    client = host_client(&host);
    sockets_say_bytes(client, (char *)chrome, 100);
    usleep(20 * 1000);
    host_carry_over(&host, &service);
    sockets_say_bytes(client, (char *)chrome + 100, chrome_bytes - 100);
    server = sockets_accept(listening);
    expect_bytes(server, chrome, chrome_bytes);
    close(client);
    sockets_hear_end(server);
    close(server);
    client = server = -1;
    host_expect_end(&host, SESSION_CLIENT_FIN);
    route_table_destroy(next.table);
}

TEST(a_hello, client_is_counted_by_the_new_limits)
{
    const struct admission_conf conf = {
        .listener = "test",
        .clients = {.each.max_connections = 1, .max_clients = 4, .name = {32, 64}}};
    struct service service = host.service;
    struct admission_ticket ticket = {0};
    enum session_reason reason;
    struct address peer;

    sockets_loopback(&peer, 1);
    ck_assert_int_eq(admission_create(&service.admission, &conf), 0);
    client = host_client(&host);
    host_carry_over(&host, &service);
    ck_assert_int_eq(admission_enter(service.admission, &ticket, &peer, &reason), ADMISSION_RESET);
    host_abort(&host, SESSION_DRAIN);
    host_expect_end(&host, SESSION_DRAIN);
    ck_assert_int_eq(admission_enter(service.admission, &ticket, &peer, &reason), ADMISSION_ADMIT);
    admission_leave(&ticket);
    admission_destroy(service.admission);
}

/* ---- clients without TLS ---- */

static void use_route(const struct route_conf *conf, struct upstream *up)
{
    route_table_destroy(routes.table);
    ck_assert_int_eq(route_table_create(&routes.table, conf, 1, &up), 0);
}

TEST(a_hello, first_bytes_choose_the_server_as_soon_as_they_decide)
{
    use_route(&of_ssh, upstream);
    client = host_client(&host);
    for (const char *byte = "SSH-"; *byte != '\0'; byte++) {
        ck_assert_uint_eq(atomic_load(&upstream->counters.began), 0);
        sockets_say_bytes(client, byte, 1);
        usleep(1000);
    }
    server = sockets_accept(listening);
    sockets_hear(server, "SSH-");
    sockets_say(client, "2.0");
    sockets_hear(server, "2.0");
}

/* 0: the third byte differs; 1: too few bytes, then end of file; 2: TLS that is broken. */
TEST_EACH(a_hello, other_first_bytes_lead_to_the_upstream_of_the_listener, 3)
{
    static const char *const sent[] = {"SSL", "SSH", "\x16\x03\x01\x01\x01\x02"};

    use_route(&of_ssh, upstream);
    host.service.upstream = upstream;
    client = host_client(&host);
    sockets_say(client, sent[_i]);
    if (_i == 1)
        sockets_end(client);
    server = sockets_accept(listening);
    sockets_hear(server, sent[_i]);
    if (_i == 1)
        sockets_hear_end(server);
}

TEST(a_hello, other_first_bytes_without_an_upstream_reset_the_client)
{
    use_route(&of_ssh, upstream);
    client = host_client(&host);
    sockets_say(client, "GET");
    expect_refused(SESSION_NO_ROUTE, "client 127.0.0.1:12345: no route matches; the client is");
}

TEST(a_hello, client_that_sends_too_few_bytes_in_time_is_reset)
{
    use_route(&of_ssh, upstream);
    routes.timeout_ns = 50 * NS_PER_MS;
    client = host_client(&host);
    sockets_say(client, "SS");
    expect_refused(SESSION_IDLE, "sent too few bytes to choose a route in time");
}

/* 0: alone; 1: with PROXY headers, none sent; 2: behind a header alone; 3: and with bytes. */
TEST_EACH(a_hello, address_chooses_the_server_before_the_client_sends_a_byte, 4)
{
    if (_i >= 2)
        loopback.host[0] = 192;
    host.service.proxies = _i > 0 ? &gate : NULL;
    use_route(&of_address, upstream);
    client = host_client(&host);
    if (_i == 1)
        sockets_say(client, "hello");
    if (_i >= 2)
        sockets_say(client, _i == 2 ? HEADER : HEADER "hello");
    server = sockets_accept(listening);
    sockets_say(server, "220");
    sockets_hear(client, "220");
    if (_i % 2 == 0)
        sockets_say(client, "hello");
    sockets_hear(server, "hello");
    close(client);
    sockets_hear_end(server);
    close(server);
    client = server = -1;
    host_expect_end(&host, SESSION_CLIENT_FIN);
    loopback.host[0] = 127;
}

/* 0: reset; 1: close, as on_deny says. */
TEST_EACH(a_hello, client_of_a_route_that_refuses_ends_as_a_denied_one, 2)
{
    const struct admission_conf conf = {.listener = "test",
                                        .on_deny = _i == 0 ? ADMISSION_RESET : ADMISSION_CLOSE};

    ck_assert_int_eq(admission_create(&host.service.admission, &conf), 0);
    use_route(&of_address, NULL);
    host.service.upstream = upstream;
    client = host_client(&host);
    if (_i == 0)
        sockets_hear_reset(client);
    else
        sockets_hear_end(client);
    close(client);
    client = -1;
    host_expect_end(&host, SESSION_LIMIT);
    ck_assert_uint_eq(atomic_load(&upstream->counters.began), 0);
    ck_assert_int_eq(log_lines_with("client 127.0.0.1:12345: denied by route.src"), 1);
    admission_destroy(host.service.admission);
}
