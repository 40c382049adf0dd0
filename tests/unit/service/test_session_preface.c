/* service/session_preface: the client that a PROXY header names is asked for, not the proxy. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "handlers/proxy_protocol.h"
#include "limits/acl.h"
#include "limits/admission.h"
#include "net/memory_account.h"
#include "service/proxy.h"
#include "service/session_hello.h"
#include "service/session_tls.h"
#include "support/host.h"
#include "support/log_lines.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "upstream/upstream.h"

#define DENIED  "PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n"
#define ALLOWED "PROXY TCP4 192.0.3.1 198.51.100.1 56324 443\r\n"

static struct host host;
static struct cidr trusted, denied;
static const bool allow = false;
static const struct acl_conf access_conf = {.blocks = &denied, .allow = &allow, .n = 1};
static const struct proxy_protocol_conf proxies = {
    .mode = PROXY_PROTOCOL_REQUIRED, .trusted = {&trusted, 1}, .timeout_ns = 3600 * NS_PER_S};
static struct proxy_protocol_gate gate = {.conf = &proxies, .listener = "test"};
static struct admission *admission;
static struct address address;
static struct upstream_server_conf server_conf = {
    .id = "a", .address_text = "there", .addresses = &address, .n_addresses = 1, .weight = 1};
static struct upstream_conf upstream_conf = {
    .name = "back", .servers = &server_conf, .n_servers = 1, .connect_timeout_ns = 5 * NS_PER_S};
static struct upstream *upstream;
static int listening, client;
static unsigned before;

static void setup(void)
{
    before = process_descriptors();
    log_lines_capture(LOG_LEVEL_INFO);
    ck_assert_int_eq(cidr_parse(&trusted, "127.0.0.0/8"), 0);
    ck_assert_int_eq(cidr_parse(&denied, "192.0.2.0/24"), 0);
    listening = sockets_listen(&address, 16);
    ck_assert_int_eq(upstream_create(&upstream, &upstream_conf, NULL), 0);
    host_open(&host, &proxy_ops, upstream);
    host.service.proxies = &gate;
}

static void open_client(enum admission_verdict on_deny)
{
    const struct admission_conf conf = {
        .listener = "test", .access = &access_conf, .on_deny = on_deny};

    ck_assert_int_eq(admission_create(&admission, &conf), 0);
    host.service.admission = admission;
    client = host_client(&host);
}

static void teardown(void)
{
    if (client >= 0)
        close(client);
    host_close(&host);
    admission_destroy(admission);
    upstream_destroy(upstream);
    close(listening);
    ck_assert_uint_eq(process_descriptors(), before);
}

GROUP(preface, setup, teardown);

TEST(preface, allowed_client_is_served)
{
    int server;

    open_client(ADMISSION_CLOSE);
    sockets_say(client, ALLOWED "hello");
    server = sockets_accept(listening);
    sockets_hear(server, "hello");
    close(server);
}

/* 0: on_deny = close; 1: reset. */
TEST_EACH(preface, no_server_is_chosen_for_a_denied_client, 2)
{
    static struct counters counters;

    host.service.counters = &counters;
    open_client(_i == 0 ? ADMISSION_CLOSE : ADMISSION_RESET);
    sockets_say(client, DENIED "hello");
    if (_i == 0)
        sockets_hear_end(client);
    else
        sockets_hear_reset(client);
    close(client);
    client = -1;
    host_expect_end(&host, SESSION_LIMIT);
    ck_assert_uint_eq(atomic_load(&upstream->counters.began), 0);
    ck_assert_uint_eq(atomic_load(&counters.bytes_in), strlen("hello"));
}

/* 0: bytes follow the PROXY header; 1: the client would be asked to begin TLS (tls_start). */
TEST_EACH(preface, client_in_its_preface_is_reset_when_the_listener_loses_its_tls, 2)
{
    const struct session_tls_conf tls = {.timeout_ns = 3600 * NS_PER_S, .postgres = _i == 1};
    struct service next;

    host.service.tls = &tls;
    open_client(ADMISSION_CLOSE);
    next = host.service;
    next.tls = NULL;
    host_carry_over(&host, &next);
    sockets_say(client, _i == 0 ? ALLOWED "hello" : ALLOWED);
    sockets_hear_reset(client);
    host_expect_end(&host, SESSION_DRAIN);
}

/* The routes went while the PROXY header was awaited: the server may speak first. */
TEST(preface, client_in_its_preface_is_led_to_the_upstream_when_the_listener_loses_its_routes)
{
    struct session_routes routes = {.timeout_ns = 3600 * NS_PER_S};
    struct service next;
    int server;

    host.service.routes = &routes;
    open_client(ADMISSION_CLOSE);
    next = host.service;
    next.routes = NULL;
    host_carry_over(&host, &next);
    sockets_say(client, ALLOWED);
    server = sockets_accept(listening);
    sockets_say(server, "220");
    sockets_hear(client, "220");
    close(client);
    sockets_hear_end(server);
    close(server);
    client = -1;
    host_expect_end(&host, SESSION_CLIENT_FIN);
}

/* A request that is refused with one byte, for which there is no room. */
TEST(preface, unsent_postgres_answer_does_not_stop_reading_under_memory_pressure)
{
    static const uint8_t gssenc_request[] = {0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x30};
    const struct session_tls_conf tls = {.timeout_ns = 3600 * NS_PER_S, .postgres = true};
    struct memory_account scarce = {.max_bytes = INT64_MAX, .is_over = true};
    size_t stuffed = 0;
    int ours;
    char byte;

    host.service.proxies = NULL;
    host.service.tls = &tls;
    host.owner.net->buffered = &scarce;
    sockets_unix_small(&ours, &client);
    while (send(ours, "x", 1, MSG_DONTWAIT) == 1)
        stuffed++;
    host_adopt(&host, ours);
    sockets_say_bytes(client, gssenc_request, sizeof(gssenc_request));
    UNTIL(host_pending(&host) == 1);
    while (stuffed-- > 0)
        ck_assert_int_eq(recv(client, &byte, 1, 0), 1);
    sockets_hear(client, "N");
    host_abort(&host, SESSION_DRAIN);
    host_expect_end(&host, SESSION_DRAIN);
}

/* ---- connect_on = first_byte ---- */

static void open_first(void)
{
    host.service.proxies = NULL;
    host.conf.connect_on = SESSION_CONNECT_ON_FIRST_BYTE;
    client = host_client(&host);
}

TEST(preface, no_server_is_connected_before_the_first_byte)
{
    int server;

    open_first();
    PAUSE_MS(20);
    ck_assert_uint_eq(atomic_load(&upstream->counters.began), 0);
    sockets_say(client, "h");
    server = sockets_accept(listening);
    sockets_say(client, "ello");
    sockets_hear(server, "hello");
    sockets_say(server, "answer");
    sockets_hear(client, "answer");
    close(client);
    sockets_hear_end(server);
    close(server);
    host_expect_end(&host, SESSION_CLIENT_FIN);
}

TEST(preface, proxy_header_is_no_first_byte)
{
    int server;

    open_first();
    close(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
    host.service.proxies = &gate;
    client = host_client(&host);
    sockets_say(client, ALLOWED);
    PAUSE_MS(20);
    ck_assert_uint_eq(atomic_load(&upstream->counters.began), 0);
    sockets_say(client, "hello");
    server = sockets_accept(listening);
    sockets_hear(server, "hello");
    sockets_reset(client);
    sockets_hear_reset(server);
    close(server);
    host_expect_end(&host, SESSION_CLIENT_RESET);
}

/* 0: end of file; 1: reset; 2: first_byte_timeout; 3: client_idle_timeout; 4: idle_timeout. */
TEST_EACH(preface, client_without_a_byte_never_reaches_a_server, 5)
{
    static const enum session_reason reasons[] = {SESSION_CLIENT_FIN, SESSION_CLIENT_RESET,
                                                  SESSION_IDLE, SESSION_IDLE, SESSION_IDLE};

    host.conf.first_byte_timeout_ns = _i == 2 ? 30 * NS_PER_MS : 3600 * NS_PER_S;
    host.conf.client_idle_timeout_ns = _i == 3 ? 30 * NS_PER_MS : 3600 * NS_PER_S;
    host.conf.idle_timeout_ns = _i == 4 ? 30 * NS_PER_MS : 0;
    open_first();
    if (_i == 0)
        sockets_end(client);
    if (_i == 1)
        sockets_reset(client);
    else
        sockets_hear_end(client);
    if (_i != 1)
        close(client);
    host_expect_end(&host, reasons[_i]);
    ck_assert_uint_eq(atomic_load(&upstream->counters.began), 0);
    ck_assert_uint_eq(log_lines_with("client"), 0);
}

TEST(preface, client_that_waits_to_send_a_byte_survives_a_reload)
{
    struct session_conf conf = {.linger = host.conf.linger};
    struct service next;
    int server;

    open_first();
    next = host.service;
    next.conf = &conf;
    host_carry_over(&host, &next);
    sockets_say(client, "hello");
    server = sockets_accept(listening);
    sockets_hear(server, "hello");
    close(client);
    sockets_hear_end(server);
    close(server);
    host_expect_end(&host, SESSION_CLIENT_FIN);
}
