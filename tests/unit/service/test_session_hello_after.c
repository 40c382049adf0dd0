/* service/session_hello: a client that sends nothing is led to a server that speaks first. */
#include <string.h>
#include <unistd.h>

#include "handlers/proxy_protocol.h"
#include "service/proxy.h"
#include "service/session_hello.h"
#include "support/host.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "upstream/route.h"
#include "upstream/upstream.h"

#define LONG_NS (3600 * NS_PER_S)
#define HEADER  "PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n"

/* Upstreams with a server each. */
enum { SSH, MAIL, OTHER, UPSTREAMS };

static struct host host;
static struct cidr trusted, loopback, header_client;
static const struct proxy_protocol_conf proxies = {
    .mode = PROXY_PROTOCOL_OPTIONAL, .trusted = {&trusted, 1}, .timeout_ns = LONG_NS};
static struct proxy_protocol_gate gate = {.conf = &proxies, .listener = "test"};
static struct route_first ssh = {(const uint8_t *)"SSH-", 4};
static const char *names[] = {"a.example"};
static struct route_conf confs[] = {
    {.id = "tls", .names = names, .n_names = 1, .upstream = "ssh"},
    {.id = "ssh", .first = &ssh, .n_first = 1, .upstream = "ssh"},
    {.id = "mail", .after_ns = 20 * NS_PER_MS, .upstream = "mail"},
};
static struct session_routes routes, next_routes;
static struct service next;
static struct address addresses[UPSTREAMS];
static struct upstream_server_conf servers[UPSTREAMS];
static struct upstream_conf upstream_confs[UPSTREAMS] = {
    {.name = "ssh"}, {.name = "mail"}, {.name = "other"}};
static struct upstream *upstreams[UPSTREAMS];
static int listening[UPSTREAMS], client, server;
static unsigned before;

static void use(struct session_routes *of, const struct route_conf *conf, unsigned n,
                struct upstream *const *leads_to)
{
    route_table_destroy(of->table);
    ck_assert_int_eq(route_table_create(&of->table, conf, n, leads_to), 0);
}

static void setup(void)
{
    before = process_descriptors();
    log_lines_capture(LOG_LEVEL_INFO);
    ck_assert_int_eq(cidr_parse(&trusted, "127.0.0.0/8"), 0);
    ck_assert_int_eq(cidr_parse(&loopback, "127.0.0.0/8"), 0);
    ck_assert_int_eq(cidr_parse(&header_client, "192.0.2.0/24"), 0);
    for (unsigned i = 0; i < UPSTREAMS; i++) {
        listening[i] = sockets_listen(&addresses[i], 16);
        servers[i] = (struct upstream_server_conf){.id = "a",
                                                   .address_text = "there",
                                                   .addresses = &addresses[i],
                                                   .n_addresses = 1,
                                                   .weight = 1};
        upstream_confs[i].servers = &servers[i];
        upstream_confs[i].n_servers = 1;
        upstream_confs[i].connect_timeout_ns = 5 * NS_PER_S;
        ck_assert_int_eq(upstream_create(&upstreams[i], &upstream_confs[i], NULL), 0);
    }
    confs[2].after_ns = 20 * NS_PER_MS;
    confs[2].clients = (struct cidr_list){NULL, 0};
    routes.timeout_ns = next_routes.timeout_ns = LONG_NS;
    routes.table = next_routes.table = NULL;
    use(&routes, confs, 3, (struct upstream *[]){upstreams[SSH], upstreams[SSH], upstreams[MAIL]});
    host_open(&host, &proxy_ops, upstreams[OTHER]);
    host.service.routes = &routes;
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
    route_table_destroy(next_routes.table);
    for (unsigned i = 0; i < UPSTREAMS; i++) {
        upstream_destroy(upstreams[i]);
        close(listening[i]);
    }
    ck_assert_uint_eq(process_descriptors(), before);
}

/* The server of ${upstream} speaks first, then the client. */
static void expect_greeting(unsigned upstream)
{
    server = sockets_accept(listening[upstream]);
    sockets_say(server, "220");
    sockets_hear(client, "220");
    sockets_say(client, "EHLO");
    sockets_hear(server, "EHLO");
}

static void expect_end(void)
{
    close(client);
    sockets_hear_end(server);
    close(server);
    client = server = -1;
    host_expect_end(&host, SESSION_CLIENT_FIN);
}

static void do_held(void *arg)
{
    *(size_t *)arg = session_held_bytes(LIST_ENTRY(host.sessions.next, struct session, link));
}

/* Memory for the first bytes of the only client. */
static size_t held_bytes(void)
{
    size_t bytes;

    loop_runner_call(host.loop, do_held, &bytes);
    return bytes;
}

GROUP(after, setup, teardown);

/* 0: alone; 1: with PROXY headers; 2: for clients of an address; 3: of that in the header. */
TEST_EACH(after, silent_client_is_led_to_a_server_that_speaks_first, 4)
{
    host.service.proxies = _i % 2 == 1 ? &gate : NULL;
    if (_i >= 2)
        confs[2].clients = (struct cidr_list){_i == 2 ? &loopback : &header_client, 1};
    client = host_client(&host);
    if (_i % 2 == 1)
        sockets_say(client, HEADER);
    expect_greeting(MAIL);
    expect_end();
}

/* 0: bytes of a route; 1: other bytes; 2: none, but the route is for other addresses. */
TEST_EACH(after, other_clients_are_routed_as_ever, 3)
{
    static const char *const sent[] = {"SSH-", "HELO"};
    static const struct route_conf of_header = {
        .id = "mail", .after_ns = NS_PER_MS, .clients = {&header_client, 1}, .upstream = "mail"};

    confs[2].after_ns = LONG_NS / 2;
    if (_i == 2)
        use(&routes, &of_header, 1, &upstreams[MAIL]);
    client = host_client(&host);
    if (_i < 2)
        sockets_say(client, sent[_i]);
    server = sockets_accept(listening[_i == 0 ? SSH : OTHER]);
    if (_i < 2)
        sockets_hear(server, sent[_i]);
    expect_end();
}

TEST(after, first_of_several_times_that_holds_for_the_client_is_taken)
{
    static const struct route_conf several[] = {
        {.id = "late", .after_ns = LONG_NS / 2, .upstream = "ssh"},
        {.id = "other", .after_ns = NS_PER_MS, .clients = {&header_client, 1}, .upstream = "other"},
        {.id = "soon", .after_ns = 20 * NS_PER_MS, .clients = {&loopback, 1}, .upstream = "mail"},
    };

    use(&routes, several, 3,
        (struct upstream *[]){upstreams[SSH], upstreams[OTHER], upstreams[MAIL]});
    client = host_client(&host);
    expect_greeting(MAIL);
    expect_end();
}

/* No byte can come any more: the silence is certain. The shortest time is still the first. */
TEST(after, client_that_ends_its_stream_without_a_byte_gets_its_greeting_at_once)
{
    static const struct route_conf several[] = {
        {.id = "late", .after_ns = LONG_NS / 2, .upstream = "ssh"},
        {.id = "other", .after_ns = LONG_NS / 8, .clients = {&header_client, 1}},
        {.id = "soon", .after_ns = LONG_NS / 4, .upstream = "mail"},
    };

    use(&routes, several, 3, (struct upstream *[]){upstreams[SSH], NULL, upstreams[MAIL]});
    client = host_client(&host);
    sockets_end(client);
    server = sockets_accept(listening[MAIL]);
    sockets_hear_end(server);
    sockets_say(server, "220");
    sockets_hear(client, "220");
    close(server);
    server = -1;
    sockets_hear_end(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
}

TEST(after, end_of_stream_of_a_client_of_another_address_is_no_error)
{
    confs[2].clients = (struct cidr_list){&header_client, 1};
    client = host_client(&host);
    sockets_end(client);
    sockets_hear_end(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
    for (unsigned i = 0; i < UPSTREAMS; i++)
        ck_assert_uint_eq(atomic_load(&upstreams[i]->counters.began), 0);
}

TEST(after, client_that_begins_to_speak_is_silent_no_more)
{
    confs[2].after_ns = LONG_NS / 2;
    client = host_client(&host);
    sockets_say(client, "SS");
    UNTIL(held_bytes() > 0);
    confs[2].after_ns = NS_PER_MS;
    routes.timeout_ns = 50 * NS_PER_MS;
    host_carry_over(&host, &host.service);
    sockets_hear_reset(client);
    host_expect_end(&host, SESSION_IDLE);
    ck_assert_uint_eq(atomic_load(&upstreams[MAIL]->counters.began), 0);
}

TEST(after, route_that_refuses_turns_silent_clients_away)
{
    use(&routes, &confs[2], 1, (struct upstream *[]){NULL});
    client = host_client(&host);
    sockets_hear_reset(client);
    host_expect_end(&host, SESSION_LIMIT);
    ck_assert_int_eq(log_lines_with("denied by route.mail"), 1);
}

/* The time is over 20 ms from now, while the loop does not run for ${arg} ms. */
static void do_stop(void *arg)
{
    struct session *s = LIST_ENTRY(host.sessions.next, struct session, link);

    confs[2].after_ns = clock_now_ns() - s->began_at_ns + 20 * NS_PER_MS;
    session_carry_over(s, &host.service);
    sockets_say(client, "SSH-");
    PAUSE_MS(*(unsigned *)arg);
}

TEST_EACH(after, bytes_that_came_while_the_process_was_stopped_count, 2)
{
    unsigned ms = _i == 0 ? 60 : 200;

    confs[2].after_ns = LONG_NS / 2;
    client = host_client(&host);
    loop_runner_call(host.loop, do_stop, &ms);
    server = sockets_accept(listening[SSH]);
    sockets_hear(server, "SSH-");
    expect_end();
}

/* ---- reload ---- */

static void carry_over(struct session_routes *to)
{
    next = host.service;
    next.routes = to;
    host_carry_over(&host, &next);
}

/* 0: with less time; 1: without the routes, to the upstream; 2: by address, which needs no time. */
TEST_EACH(after, silent_client_is_judged_by_the_new_routes_of_a_reload, 3)
{
    static const struct route_conf of_address = {
        .id = "src", .clients = {&loopback, 1}, .upstream = "other"};
    static struct route_conf soon;

    soon = confs[2];
    confs[2].after_ns = LONG_NS / 2;
    client = host_client(&host);
    use(&next_routes, _i == 0 ? &soon : &of_address, 1, &upstreams[_i == 0 ? MAIL : OTHER]);
    carry_over(_i == 1 ? NULL : &next_routes);
    expect_greeting(_i == 0 ? MAIL : OTHER);
    expect_end();
}

/* 0: other bytes are asked for; 1: an address, which it has; 2: it is refused. */
TEST_EACH(after, client_whose_bytes_wait_is_judged_by_the_new_routes_of_a_reload, 3)
{
    static struct route_first short_ssh = {(const uint8_t *)"SS", 2};
    static const struct route_conf now[] = {
        {.id = "ssh", .first = &short_ssh, .n_first = 1, .upstream = "other"},
        {.id = "src", .clients = {&loopback, 1}, .upstream = "other"},
        {.id = "no", .clients = {&loopback, 1}}};

    client = host_client(&host);
    sockets_say(client, "SS");
    UNTIL(held_bytes() > 0);
    use(&next_routes, &now[_i], 1, (struct upstream *[]){_i == 2 ? NULL : upstreams[OTHER]});
    carry_over(&next_routes);
    if (_i == 2) {
        sockets_hear_reset(client);
        host_expect_end(&host, SESSION_LIMIT);
        return;
    }
    server = sockets_accept(listening[OTHER]);
    sockets_hear(server, "SS");
    sockets_say(client, "H-");
    sockets_hear(server, "H-");
    expect_end();
}
