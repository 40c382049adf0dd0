/* service/session: each cell of the table of phases in DESIGN.md, event x phase, is true. */
#include <errno.h>
#include <semaphore.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "handlers/proxy_protocol.h"
#include "service/relay.h"
#include "service/session_handlers.h"
#include "service/session_internal.h"
#include "stats/counters.h"
#include "support/host.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/loop_thread.h"
#include "support/phase_table.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

#define HOUR_NS (3600 * NS_PER_S)

/* A session whose server is linked when the test says so. */
struct pair {
    alignas(CACHE_LINE_BYTES) struct channel client;
    struct relay to_server;
    alignas(CACHE_LINE_BYTES) struct channel server;
    struct relay to_client;
    struct session session;
};

static struct host host;
static struct cidr trusted;
static struct proxy_protocol_conf proxies = {.mode = PROXY_PROTOCOL_REQUIRED,
                                             .trusted = {&trusted, 1}};
static struct proxy_protocol_gate gate = {.conf = &proxies, .listener = "test"};
static void (*on_ended)(struct session_owner *owner, struct session *s);
static unsigned cancelled;
static int client, server, result;
static pid_t test_thread;
static sem_t over; /* the session has ended */

/* ---- the service ---- */

static struct pair *pair_of(const struct session *s)
{
    return CONTAINER_OF(s, struct pair, session);
}

static int pair_create(struct session **out, const struct service *service)
{
    struct pair *p = session_handlers_alloc(service, sizeof(*p));

    ck_assert_ptr_nonnull(p);
    session_init(&p->session, service);
    *out = &p->session;
    return 0;
}

static void pair_open(struct session *s)
{
    struct pair *p = pair_of(s);

    channel_init(&p->client, s->owner->net, s->client_fd);
    s->client_fd = -1;
    session_leg_open(s, 0, &p->client);
    relay_init(&p->to_server, s, &p->client, &p->client);
    session_handlers_add(s, &p->client, p + 1);
}

static void pair_start(struct session *s)
{
    ck_assert_uint_ge(s->phase, SESSION_PHASE_CONNECTING);
}

static int64_t pair_no_timeout(const struct session *s)
{
    (void)s;
    return 0;
}

static void pair_cancel(struct session *s)
{
    ck_assert_uint_ge(s->phase, SESSION_PHASE_CLOSING);
    cancelled++;
}

static bool pair_finished(const struct session *s)
{
    (void)s;
    return true;
}

static void pair_free(struct session *s)
{
    free(pair_of(s));
}

static const struct service_ops pair_ops = {.name = "pair",
                                            .descriptors = 2,
                                            .create = pair_create,
                                            .open = pair_open,
                                            .start = pair_start,
                                            .server_idle_timeout_ns = pair_no_timeout,
                                            .server_closed_timeout_ns = pair_no_timeout,
                                            .cancel = pair_cancel,
                                            .finished = pair_finished,
                                            .free = pair_free};

/* ---- the events ---- */

static int start(struct session *s)
{
    session_start(s);
    return (int)s->phase;
}

static int start_echo(struct session *s)
{
    struct service_ops ops = pair_ops;
    struct service echo = host.service;

    ops.cancel = NULL;
    echo.ops = &ops;
    s->service = &echo;
    return start(s);
}

static int link_server(struct session *s)
{
    session_leg_open(s, 1, &pair_of(s)->server);
    return (int)s->phase;
}

static int lose_server(struct session *s)
{
    session_leg_lost(s, 1);
    return (int)s->phase;
}

static int close_it(struct session *s)
{
    session_close(s, SESSION_DRAIN);
    return (int)s->phase;
}

static int time_out(struct session *s)
{
    session_time_out(s, SESSION_IDLE, NS_PER_S);
    return (int)s->phase;
}

static int reset(struct session *s)
{
    session_reset(s, SESSION_LIMIT);
    return (int)s->phase;
}

static int abort_it(struct session *s)
{
    session_abort(s, SESSION_KILLED);
    return (int)s->phase;
}

static int drain(struct session *s)
{
    session_drain(s);
    return (int)s->phase;
}

static int leave(struct session *s)
{
    session_leave_by(s, clock_now_ns());
    return (int)s->phase;
}

static int carry_over(struct session *s)
{
    session_carry_over(s, &host.service);
    return (int)s->phase;
}

static int lose_all_legs(struct session *s)
{
    for (unsigned n = s->open_legs; n > 1; n--)
        session_leg_ended(s, s->legs[1], HANDLER_CLOSED, 0);
    session_leg_ended(s, s->legs[0], HANDLER_CLOSED, -ECONNRESET);
    return (int)s->phase;
}

/* Does what was set make the session's timer run? */
static int runs_timer(struct session *s)
{
    loop_cancel(host.loop, &s->timer);
    session_timer_arm(s);
    return s->timer.state == TIMER_IDLE ? NO : YES;
}

static int preface_timeout(struct session *s)
{
    proxies.timeout_ns = HOUR_NS;
    return runs_timer(s);
}

static int client_idle_timeout(struct session *s)
{
    host.conf.client_idle_timeout_ns = HOUR_NS;
    return runs_timer(s);
}

static int first_byte_timeout(struct session *s)
{
    host.conf.first_byte_timeout_ns = HOUR_NS;
    return runs_timer(s);
}

static int idle_timeout(struct session *s)
{
    host.conf.idle_timeout_ns = HOUR_NS;
    return runs_timer(s);
}

static int max_lifetime(struct session *s)
{
    s->expires_at_ns = clock_now_ns() + HOUR_NS;
    return runs_timer(s);
}

static int drained(struct session *s)
{
    s->draining = true;
    return runs_timer(s);
}

static int count_bytes(struct session *s)
{
    s->legs[0]->bytes_in = s->counted_in + 5;
    session_count_bytes(s);
    return s->counted_in > 0 ? YES : NO;
}

static const struct event {
    const char *text;
    int (*happen)(struct session *s);
} events[] = {
    {"echo: the preface, if any, is complete", start_echo},
    {"proxy: the preface, if any, is complete", start},
    {"`session_leg_open`: a server is linked", link_server},
    {"`session_leg_lost`: a spare connection was stale", lose_server},
    {"`session_close`", close_it},
    {"`session_time_out`", time_out},
    {"`session_reset`", reset},
    {"`session_abort`", abort_it},
    {"`session_drain`", drain},
    {"`session_leave_by`", leave},
    {"`session_carry_over`", carry_over},
    {"the last leg is closed", lose_all_legs},
    {"runs out: timeout of the preface", preface_timeout},
    {"runs out: `first_byte_timeout`", first_byte_timeout},
    {"runs out: timeouts of one direction", client_idle_timeout},
    {"runs out: `idle_timeout`", idle_timeout},
    {"runs out: `max_lifetime`", max_lifetime},
    {"runs out: quiet time of a drained echo", drained},
    {"`session_count_bytes` counts", count_bytes},
};

#define EVENTS (int)ARRAY_LEN(events)

/* ---- a cell ---- */

static int cell;

/*
 * In a process of its own, as MUST() may end it. The test's thread sleeps meanwhile: what a
 * sanitizer locks in a running thread stays locked in the new process.
 */
static void happen(struct session *s)
{
    const struct event *event = &events[cell / PHASES];
    pid_t child = fork();
    int status;

    ck_assert_int_ge(child, 0);
    if (child == 0)
        _exit(event->happen(s));
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status))
        result = WTERMSIG(status) == SIGABRT ? NEVER : -1;
    else
        result = WEXITSTATUS(status);
}

static void ended(struct session_owner *owner, struct session *s)
{
    if (cell % PHASES == SESSION_PHASE_ENDING) {
        ck_assert_uint_eq(s->phase, SESSION_PHASE_ENDING);
        UNTIL(loop_thread_sleeps(&(struct loop_thread){.tid = test_thread}, NS_PER_MS));
        happen(s);
        sem_post(&over);
    }
    on_ended(owner, s);
}

static void do_cell(void *arg)
{
    struct session *s = LIST_FIRST(&host.sessions, struct session, link);
    struct pair *p = pair_of(s);
    int fd;

    (void)arg;
    if (cell % PHASES >= SESSION_PHASE_OPEN) {
        sockets_tcp(&fd, &server);
        channel_init(&p->server, s->owner->net, fd);
        session_leg_open(s, 1, &p->server);
        relay_init(&p->to_server, s, &p->client, &p->server);
        relay_init(&p->to_client, s, &p->server, &p->client);
    }
    if (cell % PHASES == SESSION_PHASE_CLOSING)
        session_close(s, SESSION_DRAIN);
    ck_assert_uint_eq(cancelled, 0);
    if (cell % PHASES == SESSION_PHASE_ENDING) {
        session_abort(s, SESSION_DRAIN);
        return;
    }
    ck_assert_uint_eq(s->phase, cell % PHASES);
    happen(s);
}

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
    ck_assert_int_eq(cidr_parse(&trusted, "127.0.0.0/8"), 0);
    host_open(&host, &pair_ops, NULL);
    on_ended = host.owner.ended;
    host.owner.ended = ended;
    server = result = -1;
    test_thread = getpid();
    ck_assert_int_eq(sem_init(&over, 0, 0), 0);
}

static void teardown(void)
{
    if (client >= 0)
        close(client);
    host_close(&host);
    if (server >= 0)
        close(server);
}

GROUP(phases, setup, teardown);

TEST_EACH(phases, each_cell_of_the_table_is_true, EVENTS *PHASES)
{
    const char *event = events[_i / PHASES].text;

    cell = _i;
    ck_assert_int_eq(phase_table_read(), EVENTS);
    if (cell % PHASES == SESSION_PHASE_PREFACE)
        host.service.proxies = &gate;
    client = host_client(&host);
    loop_runner_call(host.loop, do_cell, NULL);
    if (cell % PHASES == SESSION_PHASE_ENDING)
        ck_assert_int_eq(sem_wait(&over), 0);
    ck_assert_msg(result == phase_table_expected(event, cell % PHASES),
                  "%s in phase %d: the table says %s, but it is %d", event, cell % PHASES,
                  phase_table_cell(event, cell % PHASES), result);
}

/* ---- connecting ---- */

static void do_end(void *arg)
{
    struct session *s = LIST_FIRST(&host.sessions, struct session, link);

    (void)arg;
    session_close(s, SESSION_DRAIN);
    ck_assert_uint_eq(cancelled, 1);
    session_abort(s, SESSION_DRAIN);
}

TEST(phases, an_end_stops_connecting_once)
{
    client = host_client(&host);
    loop_runner_call(host.loop, do_end, NULL);
    host_expect_end(&host, SESSION_DRAIN);
    ck_assert_uint_eq(cancelled, 1);
}

static void do_notice_reset(void *arg)
{
    (void)arg;
    channel_notice_reset(LIST_FIRST(&host.sessions, struct session, link)->legs[0]);
}

TEST(phases, the_end_of_a_client_stops_connecting)
{
    client = host_client(&host);
    loop_runner_call(host.loop, do_notice_reset, NULL);
    sockets_reset(client);
    client = -1;
    host_expect_end(&host, SESSION_CLIENT_RESET);
    ck_assert_uint_eq(cancelled, 1);
}
