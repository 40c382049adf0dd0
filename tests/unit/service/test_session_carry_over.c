/*
 * service/session: what an open session takes from the next generation of its listener, and that
 * it has forgotten the old one.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "handlers/pipeline_template.h"
#include "handlers/proxy_protocol.h"
#include "limits/throttle.h"
#include "service/echo.h"
#include "stats/access_log.h"
#include "stats/access_log_format.h"
#include "support/host.h"
#include "support/log_lines.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

static struct host host;
static struct service next;
static struct session_conf next_conf;
static struct throttle_shared shared;
static struct throttle_plan throttles[2];
static unsigned before;
static int client;

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
    before = process_descriptors();
    host_open(&host, &echo_ops, NULL);
}

static void teardown(void)
{
    close(client);
    host_close(&host);
    ck_assert_uint_eq(process_descriptors(), before);
}

/* The first generation with one session, that has been served. */
static void begin(void)
{
    client = host_client(&host);
    sockets_say(client, "x");
    sockets_hear(client, "x");
    next = host.service;
    next_conf = host.conf;
    next.conf = &next_conf;
}

static void carry_over(void)
{
    host_carry_over(&host, &next);
    memset(&host.service, 0xa5, sizeof(host.service));
    memset(&host.conf, 0xa5, sizeof(host.conf));
}

static void expect_service(void)
{
    sockets_say(client, "still");
    sockets_hear(client, "still");
}

GROUP(carry_over, setup, teardown);

TEST(carry_over, open_session_goes_on)
{
    begin();
    carry_over();
    expect_service();
    close(client);
    client = dup(0);
    host_expect_end(&host, SESSION_CLIENT_FIN);
}

/* 0: no bytes; 1: none from the client; 2: its age. */
TEST_EACH(carry_over, timeout_switched_on_ends_a_session, 3)
{
    static int64_t *const timeouts[] = {
        &next_conf.idle_timeout_ns, &next_conf.client_idle_timeout_ns, &next_conf.max_lifetime_ns};

    begin();
    *timeouts[_i] = 200 * NS_PER_MS;
    carry_over();
    sockets_hear_end(client);
    host_expect_end(&host, _i == 2 ? SESSION_LIFETIME : SESSION_IDLE);
}

TEST_EACH(carry_over, timeout_switched_off_ends_no_session, 3)
{
    int64_t *const timeouts[] = {&host.conf.idle_timeout_ns, &host.conf.client_idle_timeout_ns,
                                 &host.conf.max_lifetime_ns};

    *timeouts[_i] = 600 * NS_PER_MS;
    begin();
    next_conf.idle_timeout_ns = next_conf.client_idle_timeout_ns = next_conf.max_lifetime_ns = 0;
    carry_over();
    PAUSE_MS(900);
    expect_service();
}

/* ---- bandwidths ---- */

#define BYTES 200000

static void bandwidth(const struct service *service, unsigned i, unsigned bytes)
{
    const struct throttle_conf conf = {.each_in = bytes, .all_in = bytes};

    throttle_plan_init(&throttles[i], &conf, &shared);
    ((struct service *)service)->throttle = bytes > 0 ? &throttles[i] : NULL;
}

/* Time until BYTES are there and back. */
static int64_t echo_ms(void)
{
    static char data[BYTES], back[BYTES];
    int64_t began_at_ns = clock_now_ns();
    size_t sent = 0, got = 0;

    while (got < BYTES) {
        ssize_t n = sent < BYTES ? send(client, data + sent, BYTES - sent, MSG_DONTWAIT) : 0;

        sent += n > 0 ? (size_t)n : 0;
        n = recv(client, back + got, BYTES - got, MSG_DONTWAIT);
        got += n > 0 ? (size_t)n : 0;
        if (n < 0)
            PAUSE_MS(1);
    }
    return since_ms(began_at_ns);
}

TEST(carry_over, bandwidth_can_be_switched_on_lowered_and_off)
{
    begin();
    bandwidth(&next, 1, 200000); /* a tenth at once */
    carry_over();
    ck_assert_int_ge(echo_ms(), 700);
    bandwidth(&host.service, 0, 0);
    host.service = next;
    host.service.throttle = NULL;
    host_carry_over(&host, &host.service);
    memset(&next, 0xa5, sizeof(next));
    memset(&throttles, 0xa5, sizeof(throttles));
    ck_assert_int_lt(echo_ms(), 700);
    next = host.service;
    bandwidth(&next, 0, 400000);
    carry_over();
    ck_assert_int_ge(echo_ms(), 300);
}

TEST(carry_over, session_waiting_for_bandwidth_resumes_when_the_limit_is_removed)
{
    char data[20000] = {0};

    bandwidth(&host.service, 0, 1000);
    begin();
    next.throttle = NULL;
    ck_assert_int_eq(send(client, data, sizeof(data), 0), sizeof(data));
    PAUSE_MS(50);
    carry_over();
    ck_assert_int_eq(recv(client, data, sizeof(data), MSG_WAITALL), sizeof(data));
}

/* ---- what it keeps ---- */

TEST(carry_over, session_keeps_the_handlers_that_it_began_with)
{
    struct pipeline_conf none = {.n = 0};
    struct pipeline_template *after;

    host_pipeline(&host, "log", NULL);
    begin();
    ck_assert_int_eq(pipeline_template_create(&after, &none, NULL, NULL), 0);
    next.pipeline = after;
    carry_over();
    pipeline_template_release(host.plan);
    host.plan = after;
    expect_service();
    host_abort(&host, SESSION_DRAIN);
}

/* The new rules: 0: optional; 1: off. */
TEST_EACH(carry_over, pending_header_is_read_by_the_new_rules_for_the_old_handlers, 2)
{
    struct proxy_protocol_conf conf = {.mode = PROXY_PROTOCOL_REQUIRED, .timeout_ns = 5 * NS_PER_S};
    struct proxy_protocol_conf optional = {
        .mode = _i == 0 ? PROXY_PROTOCOL_OPTIONAL : PROXY_PROTOCOL_OFF, .timeout_ns = 5 * NS_PER_S};
    struct proxy_protocol_gate gate = {.conf = &conf, .listener = "test"};
    struct proxy_protocol_gate next_gate = {.conf = &optional, .listener = "test"};
    struct cidr trusted;

    ck_assert_int_eq(cidr_parse(&trusted, "127.0.0.0/8"), 0);
    conf.trusted = optional.trusted = (struct cidr_list){&trusted, 1};
    host.service.proxies = &gate;
    host_pipeline(&host, "log", NULL);
    client = host_client(&host);
    next = host.service;
    next.proxies = &next_gate;
    next.pipeline = NULL;
    next_conf = host.conf;
    next.conf = &next_conf;
    carry_over();
    memset(&gate, 0xa5, sizeof(gate));
    memset(&conf, 0xa5, sizeof(conf));
    sockets_say(client, "hello");
    sockets_hear(client, "hello");
    host_abort(&host, SESSION_DRAIN);
    UNTIL(atomic_load(&host.ended) == 1);
}

/* 0: it has none of its own; 1: a later one. */
TEST_EACH(carry_over, instant_to_leave_is_kept_when_the_lifetime_changes, 2)
{
    host.conf.max_lifetime_ns = 3600 * NS_PER_S;
    begin();
    host_leave_in(&host, 200 * NS_PER_MS);
    next_conf.max_lifetime_ns = _i == 0 ? 0 : 1800 * NS_PER_S;
    carry_over();
    sockets_hear_end(client);
    host_expect_end(&host, SESSION_DRAIN);
}

/* ---- access log ---- */

static atomic_uint lines;

static ssize_t count(void *cookie, const char *text, size_t len)
{
    (void)cookie;
    ck_assert_ptr_nonnull(memmem(text, len, "number=1 ", 9));
    atomic_fetch_add(&lines, 1);
    return (ssize_t)len;
}

static struct arena *arena;
static struct access_log *access_log;
static struct service_access_log logs;

static void open_log(struct service *service, const char *format)
{
    struct access_log_conf conf = {
        .name = "test", .sink.write = count, .pool = 9, .max_bytes = 65536};
    struct access_log_format_problem problem;

    atomic_store(&lines, 0);
    ck_assert_int_eq(arena_create(&arena), 0);
    ck_assert_int_eq(access_log_create(&access_log, &conf), 0);
    ck_assert_int_eq(access_log_format_parse(&logs.format, format, arena, &problem), 0);
    logs.log = access_log;
    service->access_logs = &logs;
    service->n_access_logs = 1;
}

static void close_log(void)
{
    host_abort(&host, SESSION_DRAIN);
    UNTIL(atomic_load(&host.ended) == 1);
    ck_assert_int_eq(access_log_finish(access_log, clock_add_ns(clock_now_ns(), NS_PER_S)), 0);
    access_log_destroy(access_log);
    arena_release(arena);
}

TEST(carry_over, access_log_switched_on_gets_the_line_of_an_open_session)
{
    begin();
    open_log(&next, "number=$connection $reason");
    carry_over();
    host_abort(&host, SESSION_DRAIN);
    UNTIL(atomic_load(&lines) == 1);
    close_log();
}

/* A session of 50 intervals: 50 of the longer ones would be too long for UNTIL(). */
TEST(carry_over, longer_log_interval_applies_after_the_current_one)
{
    int64_t began_at_ns = clock_now_ns();
    unsigned n;

    open_log(&host.service, "number=$connection $reason");
    host.service.access_log_interval_ns = 10 * NS_PER_MS;
    begin();
    UNTIL(since_ms(began_at_ns) >= 500);
    next.access_log_interval_ns = 1 * NS_PER_S;
    carry_over();
    n = atomic_load(&lines);
    UNTIL(atomic_load(&lines) >= n + 2); /* one may have been on its way */
    close_log();
}

TEST(carry_over, client_is_counted_by_the_new_limits)
{
    struct admission_conf conf = {.listener = "test",
                                  .clients = {.max_clients = 4, .name = {32, 64}}};
    struct admission_ticket ticket = {0};
    struct address peer;
    enum session_reason reason;

    sockets_loopback(&peer, 1);
    begin();
    conf.clients.each.max_connections = 1;
    ck_assert_int_eq(admission_create(&next.admission, &conf), 0);
    carry_over();
    ck_assert_int_eq(admission_enter(next.admission, &ticket, &peer, &reason), ADMISSION_RESET);
    host_abort(&host, SESSION_DRAIN);
    UNTIL(atomic_load(&host.ended) == 1);
    ck_assert_int_eq(admission_enter(next.admission, &ticket, &peer, &reason), ADMISSION_ADMIT);
    admission_leave(&ticket);
    admission_destroy(next.admission);
}
