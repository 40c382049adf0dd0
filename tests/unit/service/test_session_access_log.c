/*
 * service/session_access_log: what a session's lines say, when they come, and that there is one for
 * each end.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "handlers/proxy_protocol.h"
#include "net/proxy_header.h"
#include "net/splice.h"
#include "service/echo.h"
#include "service/proxy.h"
#include "service/session_access_log.h"
#include "service/session_hello.h"
#include "stats/access_log.h"
#include "stats/access_log_format.h"
#include "support/hellos.h"
#include "support/host.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "upstream/route.h"
#include "upstream/upstream.h"
#include "upstream/upstream_change.h"

static struct host host;
static struct arena *arena;
static struct access_log *al;
static struct address address[2];
static struct upstream_server_conf servers[] = {
    {.id = "a", .address_text = "there", .addresses = &address[0], .n_addresses = 1, .weight = 1},
    {.id = "b", .address_text = "there", .addresses = &address[1], .n_addresses = 1, .weight = 1}};
static struct upstream_conf conf = {.name = "back",
                                    .servers = servers,
                                    .n_servers = 2,
                                    .balance = BALANCER_FIRST,
                                    .retries = 3,
                                    .connect_timeout_ns = 5 * NS_PER_S};
static struct upstream *upstream;
static int listening = -1;

/* What was written. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char text[1 << 16];
static size_t text_len;

static ssize_t keep(void *cookie, const char *lines, size_t len)
{
    (void)cookie;
    pthread_mutex_lock(&lock);
    ck_assert_uint_lt(text_len + len, sizeof(text));
    memcpy(text + text_len, lines, len);
    text_len += len;
    pthread_mutex_unlock(&lock);
    return (ssize_t)len;
}

static unsigned lines(void)
{
    unsigned n = 0;

    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < text_len; i++)
        n += text[i] == '\n';
    pthread_mutex_unlock(&lock);
    return n;
}

static bool says(const char *what)
{
    bool found;

    pthread_mutex_lock(&lock);
    found = strstr(text, what) != NULL;
    pthread_mutex_unlock(&lock);
    return found;
}

static void open_host(const struct service_ops *ops, const char *format)
{
    const struct access_log_conf log = {
        .name = "x", .sink = {.write = keep}, .pool = 5, .max_bytes = 1 << 17};
    struct access_log_format_problem problem;

    log_lines_capture(LOG_LEVEL_INFO);
    ck_assert_int_eq(arena_create(&arena), 0);
    ck_assert_int_eq(access_log_create(&al, &log), 0);
    host_open(&host, ops, upstream);
    host.service.listener = "front";
    host.service.access_log = al;
    ck_assert_int_eq(
        access_log_format_parse(&host.service.access_log_format, format, arena, &problem), 0);
}

static void open_proxy(const char *format)
{
    listening = sockets_listen(&address[1], 64);
    close(sockets_bound(&address[0])); /* refuses */
    ck_assert_int_eq(upstream_create(&upstream, &conf, NULL), 0);
    open_host(&proxy_ops, format);
}

static void teardown(void)
{
    host_close(&host);
    ck_assert_int_eq(access_log_finish(al, clock_now_ns() + 10 * NS_PER_S), 0);
    access_log_destroy(al);
    arena_release(arena);
    upstream_destroy(upstream);
    if (listening >= 0)
        close(listening);
}

static void expect(const char *wanted)
{
    UNTIL(lines() > 0);
    ck_assert_str_eq(text, wanted);
}

GROUP(lines, NULL, teardown);

TEST(lines, echo_session_has_one_line_at_its_end)
{
    int client;

    open_host(&echo_ops, "$connection $listener $upstream $server $server_address $bytes_in "
                         "$bytes_out $queue_time $connect_time $first_byte_time $tries $reason");
    client = host_client(&host);
    sockets_say(client, "hello");
    sockets_hear(client, "hello");
    PAUSE_MS(30);
    ck_assert_uint_eq(lines(), 0);
    close(client);
    expect("1 front - - - 5 5 - - - 0 client_fin\n");
}

static void expect_rtt_of_ended_client(const char *reason)
{
    unsigned rtt_us;
    char word[32];

    UNTIL(lines() == 1);
    ck_assert_int_eq(sscanf(text, "%u %31s\n", &rtt_us, word), 2);
    ck_assert_uint_gt(rtt_us, 0);
    ck_assert_str_eq(word, reason);
}

TEST(lines, client_rtt_is_asked_before_an_echo_client_is_closed)
{
    int client;

    open_host(&echo_ops, "$client_rtt $reason");
    client = host_client(&host);
    sockets_say(client, "hello");
    sockets_hear(client, "hello");
    close(client);
    expect_rtt_of_ended_client("client_fin");
}

TEST(lines, client_rtt_is_asked_of_a_client_that_was_reset)
{
    int client;

    open_host(&echo_ops, "$client_rtt $reason");
    client = host_client(&host);
    sockets_say(client, "hello");
    sockets_hear(client, "hello");
    sockets_reset(client);
    expect_rtt_of_ended_client("client_reset");
}

TEST(lines, client_rtt_is_asked_of_a_client_that_was_closed_before_its_server)
{
    int client, server;

    open_proxy("$client_rtt $reason");
    client = host_client(&host);
    server = sockets_accept(listening);
    close(client);
    sockets_hear_end(server);
    PAUSE_MS(30);
    close(server);
    expect_rtt_of_ended_client("client_fin");
}

TEST(lines, client_rtt_is_asked_of_a_client_that_leaves_the_queue)
{
    int holder, server, client;

    servers[1].max_connections = 1;
    conf.queue_length = 1;
    conf.queue_timeout_ns = 3600 * NS_PER_S;
    open_proxy("$client_rtt $reason");
    holder = host_client(&host);
    server = sockets_accept(listening);
    client = host_client(&host);
    UNTIL(wait_queue_length(&upstream->waiting) == 1);
    sockets_reset(client);
    expect_rtt_of_ended_client("client_reset");
    close(holder);
    close(server);
}

TEST(lines, line_of_a_proxied_session_names_its_server)
{
    char wanted[256], there[ADDRESS_TEXT_BYTES];
    int client, server;

    open_proxy("$upstream $server $server_address $bytes_in $bytes_out $tries $reason");
    client = host_client(&host);
    server = sockets_accept(listening);
    sockets_say(client, "question");
    sockets_hear(server, "question");
    sockets_say(server, "answer");
    sockets_hear(client, "answer");
    close(server);
    sockets_hear_end(client);
    close(client);
    snprintf(wanted, sizeof(wanted), "back b %s 8 6 2 upstream_fin\n",
             address_format(there, sizeof(there), &address[1]));
    expect(wanted);
}

TEST(lines, line_has_sni_and_all_alpn_protocols_of_the_client_hello)
{
    static const struct route_conf route = {.id = "a", .upstream = "back"};
    const struct hello *h = &hellos[2];
    struct session_routes routes = {.timeout_ns = 3600 * NS_PER_S};
    uint8_t bytes[HELLO_MAX_BYTES];
    char wanted[256];
    size_t len = hello_bytes(bytes, h);
    int client, server;

    open_proxy("$sni $alpn $ja4");
    ck_assert_int_eq(route_table_create(&routes.table, &route, 1, &upstream), 0);
    host.service.routes = &routes;
    client = host_client(&host);
    sockets_say_bytes(client, (char *)bytes, len);
    server = sockets_accept(listening);
    ck_assert_int_eq(recv(server, bytes, len, MSG_WAITALL), (ssize_t)len);
    shutdown(server, SHUT_WR);
    sockets_hear_end(client);
    close(client);
    close(server);
    snprintf(wanted, sizeof(wanted), "%s %s %s\n", h->sni, h->alpn, h->ja4);
    ck_assert_ptr_nonnull(strchr(h->alpn, ','));
    expect(wanted);
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
    open_host(&echo_ops, "$sni $alpn $tls_version $tls_cipher $tls_group $tls_client_name");
    host.service.proxies = &gate;
    client = host_client(&host);
    sockets_say_bytes(client, (char *)header, proxy_header_encode(header, &all, &who));
    sockets_say(client, "hello");
    sockets_hear(client, "hello");
    close(client);
    snprintf(wanted, sizeof(wanted), "%s h2 TLSv1.3 suite group client\n",
             header_names[_i].written);
    expect(wanted);
}

TEST(lines, line_of_a_client_reset_in_the_queue_has_its_queue_time)
{
    int holder, server, client;
    double queue_s;

    servers[1].max_connections = 1;
    conf.queue_length = 1;
    conf.queue_timeout_ns = 3600 * NS_PER_S;
    open_proxy("$queue_time $reason");
    holder = host_client(&host);
    server = sockets_accept(listening);
    client = host_client(&host);
    UNTIL(wait_queue_length(&upstream->waiting) == 1);
    PAUSE_MS(50);
    sockets_reset(client);
    UNTIL(lines() == 1);
    ck_assert_int_eq(sscanf(text, "%lf client_reset\n", &queue_s), 1);
    ck_assert(queue_s >= 0.05);
    close(holder);
    close(server);
}

/* The server says something 50 ms after it was connected, and hangs up another 50 ms later. */
static void expect_times(enum splice_mode splice)
{
    double connect_s, first_s, duration_s;
    int client, server;

    open_proxy("$connect_time $first_byte_time $duration $queue_time");
    host.conf.splice = splice;
    client = host_client(&host);
    server = sockets_accept(listening);
    PAUSE_MS(50);
    sockets_say(server, "x");
    sockets_hear(client, "x");
    PAUSE_MS(50);
    sockets_say(server, "y");
    sockets_hear(client, "y");
    close(server);
    close(client);
    UNTIL(lines() == 1);
    ck_assert_int_eq(sscanf(text, "%lf %lf %lf -\n", &connect_s, &first_s, &duration_s), 3);
    ck_assert(connect_s >= 0 && connect_s <= first_s);
    ck_assert(first_s >= 0.045 && first_s + 0.045 <= duration_s);
}

TEST_RANGE(lines, first_byte_time_is_logged_in_every_splice_mode, SPLICE_AUTO, SPLICE_OFF + 1)
{
    expect_times((enum splice_mode)_i);
}

TEST(lines, silent_server_has_no_first_byte_time)
{
    int client, server;

    open_proxy("$first_byte_time $server $reason");
    client = host_client(&host);
    server = sockets_accept(listening);
    close(client);
    sockets_hear_end(server);
    close(server);
    expect("- b client_fin\n");
}

TEST(lines, session_that_reaches_no_server_is_logged_with_the_last_server_tried)
{
    int client;

    conf.n_servers = 1;
    open_proxy("$upstream $server $server_address $connect_time $tries $reason");
    client = host_client(&host);
    sockets_hear_reset(client);
    close(client);
    expect("back a - - 1 connect_refused\n");
}

static void remove_servers(void *arg)
{
    static struct upstream_conf next;
    struct upstream_change *change;

    (void)arg;
    next = conf;
    next.n_servers = 0;
    ck_assert_int_eq(upstream_change_prepare(&change, upstream, &next), 0);
    upstream_change_commit(change);
    (void)upstream_sweep_unused(upstream);
}

/* It pauses, to try again; meanwhile the server that it tried is removed. */
TEST(lines, last_server_tried_is_named_even_if_it_was_removed)
{
    struct upstream_server *a;
    int client;

    conf.n_servers = 1;
    conf.retries = 1;
    conf.retry_budget = 100;
    conf.retry_timeout_ns = NS_PER_S;
    open_proxy("$server $reason");
    a = membership_now(&upstream->membership)->servers[0];
    client = host_client(&host);
    UNTIL(ref_count(&a->references) > 1 && endpoint_active(&a->endpoint) == 0);
    loop_runner_call(host.loop, remove_servers, NULL);
    sockets_hear_reset(client);
    close(client);
    expect("a connect_refused\n");
}

TEST(lines, open_session_has_a_line_each_interval)
{
    int client;

    open_host(&echo_ops, "$connection $reason $bytes_in $duration");
    host.service.access_log_interval_ns = 100 * NS_PER_MS;
    client = host_client(&host);
    sockets_say(client, "x");
    sockets_hear(client, "x");
    UNTIL(lines() >= 3);
    close(client);
    host_expect_end(&host, SESSION_CLIENT_FIN);
    UNTIL(says("client_fin"));
    for (char *line = strtok(text, "\n"), *next; line; line = next) {
        double duration_s;
        unsigned number;
        char reason[32];

        next = strtok(NULL, "\n");
        ck_assert_int_eq(sscanf(line, "%u %31s 1 %lf", &number, reason, &duration_s), 3);
        ck_assert_uint_eq(number, 1);
        ck_assert_str_eq(reason, next ? "open" : "client_fin");
        ck_assert(duration_s >= 0.1);
    }
}

TEST(lines, log_interval_does_not_prevent_the_idle_timeout)
{
    int client;

    open_host(&echo_ops, "$reason");
    host.service.access_log_interval_ns = 50 * NS_PER_MS;
    host.conf.idle_timeout_ns = 2 * NS_PER_S;
    client = host_client(&host);
    sockets_hear_end(client);
    close(client);
    host_expect_end(&host, SESSION_IDLE);
    UNTIL(says("idle"));
    ck_assert_uint_ge(lines(), 3);
}

TEST(lines, session_that_no_worker_adopted_has_its_line)
{
    int ours, theirs;
    struct session *s;

    open_host(&echo_ops, "$connection $client $worker $duration $reason");
    sockets_unix(&ours, &theirs);
    ck_assert_int_eq(echo_ops.create(&s, &host.service), 0);
    s->client_fd = ours;
    session_set_reason(s, SESSION_DRAIN);
    session_refuse(s);
    close(theirs);
    expect("1 - - 0.000000 drain\n");
}

TEST(lines, refused_client_has_its_line)
{
    struct address client;

    open_host(&echo_ops, "$connection $client $listener $bytes_in $reason");
    sockets_loopback(&client, 9);
    session_access_log_turned_away(&host.service, &client, NULL, SESSION_LIMIT);
    expect("1 127.0.0.1 front 0 limit\n");
}
