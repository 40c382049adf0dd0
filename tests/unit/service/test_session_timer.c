/* service/session_timer: who must say something within what time, and what the one timer costs. */
#include <errno.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "service/relay.h"
#include "support/host.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

/*
 * A session of two legs whose server is there from the beginning, or comes when the test says so.
 */
struct pair {
    alignas(CACHE_LINE_BYTES) struct channel client;
    struct relay to_server;
    alignas(CACHE_LINE_BYTES) struct channel server;
    struct relay to_client;
    struct session session;
};

#define SESSIONS 200

static struct host host;
static struct pair *pairs[SESSIONS];
static unsigned n_pairs, before;
static int64_t server_idle_timeout_ns, server_closed_timeout_ns;
static int server_fd; /* of the session that comes next; -1: it has to wait */
static int client, server;

static int pair_create(struct session **out, const struct service *service)
{
    struct pair *p = aligned_alloc(alignof(struct pair), sizeof(*p));

    ck_assert_ptr_nonnull(p);
    session_init(&p->session, service);
    pairs[n_pairs++] = p;
    *out = &p->session;
    return 0;
}

static void pair_connect(struct pair *p, int fd)
{
    struct session *s = &p->session;

    channel_init(&p->server, s->owner->net, fd);
    session_leg_open(s, 1, &p->server);
    relay_init(&p->to_server, s, &p->client, &p->server);
    relay_init(&p->to_client, s, &p->server, &p->client);
    channel_start(&p->server);
    channel_start(&p->client);
}

static void pair_open(struct session *s)
{
    struct pair *p = CONTAINER_OF(s, struct pair, session);

    channel_init(&p->client, s->owner->net, s->client_fd);
    s->client_fd = -1;
    session_leg_open(s, 0, &p->client);
    relay_init(&p->to_server, s, &p->client, &p->client);
}

static void pair_start(struct session *s)
{
    struct pair *p = CONTAINER_OF(s, struct pair, session);

    if (server_fd >= 0)
        pair_connect(p, server_fd);
}

static int64_t pair_server_closed_timeout_ns(const struct session *s)
{
    (void)s;
    return server_closed_timeout_ns;
}

static int64_t pair_server_idle_timeout_ns(const struct session *s)
{
    (void)s;
    return server_idle_timeout_ns;
}

static void pair_cancel(struct session *s)
{
    (void)s;
}

static void pair_free(struct session *s)
{
    free(CONTAINER_OF(s, struct pair, session));
}

static const struct service_ops pair_ops = {.name = "pair",
                                            .descriptors = 2,
                                            .create = pair_create,
                                            .open = pair_open,
                                            .start = pair_start,
                                            .server_idle_timeout_ns = pair_server_idle_timeout_ns,
                                            .server_closed_timeout_ns =
                                                pair_server_closed_timeout_ns,
                                            .cancel = pair_cancel,
                                            .free = pair_free};

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
    before = process_descriptors();
    host_open(&host, &pair_ops, NULL);
    n_pairs = 0;
    server_idle_timeout_ns = 0;
    server_closed_timeout_ns = 0;
    client = server = -1;
}

static void teardown(void)
{
    host_close(&host);
    if (client >= 0)
        close(client);
    if (server >= 0)
        close(server);
    ck_assert_uint_eq(process_descriptors(), before);
}

static void connect_both(void)
{
    sockets_tcp(&server_fd, &server);
    client = host_client(&host);
}

static void do_connect(void *arg)
{
    pair_connect(pairs[0], *(int *)arg);
}

/* The server that a session waited for is there. */
static void connect_server(void)
{
    int fd;

    sockets_tcp(&fd, &server);
    loop_runner_call(host.loop, do_connect, &fd);
}

static void do_look(void *arg)
{
    const struct timer *timer = &pairs[0]->session.timer;

    *(int64_t *)arg = timer->state == TIMER_IDLE ? CLOCK_NEVER : timer->at_ns;
}

/* When the timer is to fire; CLOCK_NEVER: it is not armed. */
static int64_t timer_at_ns(void)
{
    int64_t at_ns;

    loop_runner_call(host.loop, do_look, &at_ns);
    return at_ns;
}

/*
 * So long after ${at_ns} both sides hear the end: not earlier, and not so late that it would be
 * another timeout.
 */
static void expect_end_after(int64_t at_ns, int least_ms, enum session_reason reason)
{
    sockets_hear_end(client);
    ck_assert_int_ge(since_ms(at_ns), least_ms - 20); /* the loop's clock is that of its turn */
    ck_assert_int_lt(since_ms(at_ns), least_ms + 5000);
    sockets_hear_end(server);
    close(client);
    close(server);
    client = server = -1;
    host_expect_end(&host, reason);
}

/* ---- one side says nothing ---- */

GROUP(timer, setup, teardown);

TEST(timer, client_that_falls_silent_ends_the_session)
{
    int64_t at_ns;

    host.conf.client_idle_timeout_ns = 800 * NS_PER_MS;
    connect_both();
    PAUSE_MS(300);
    at_ns = clock_now_ns();
    sockets_say(client, "x");
    sockets_hear(server, "x");
    expect_end_after(at_ns, 800, SESSION_IDLE);
}

TEST(timer, bytes_of_the_server_do_not_restart_the_timeout_of_the_client)
{
    int64_t at_ns;

    host.conf.client_idle_timeout_ns = 3 * NS_PER_S;
    host.conf.idle_timeout_ns = 60 * NS_PER_S;
    at_ns = clock_now_ns();
    connect_both();
    for (int i = 0; i < 5; i++) {
        sockets_say(server, "x");
        sockets_hear(client, "x");
        PAUSE_MS(60);
    }
    expect_end_after(at_ns, 3000, SESSION_IDLE);
}

TEST(timer, bytes_of_the_client_do_not_restart_the_timeout_of_the_server)
{
    int64_t at_ns;

    server_idle_timeout_ns = 3 * NS_PER_S;
    at_ns = clock_now_ns();
    connect_both();
    for (int i = 0; i < 5; i++) {
        sockets_say(client, "x");
        sockets_hear(server, "x");
        PAUSE_MS(60);
    }
    expect_end_after(at_ns, 3000, SESSION_IDLE);
}

TEST(timer, each_side_that_sends_in_time_keeps_the_session_open)
{
    host.conf.client_idle_timeout_ns = 800 * NS_PER_MS;
    server_idle_timeout_ns = NS_PER_S;
    connect_both();
    for (int i = 0; i < 12; i++) {
        PAUSE_MS(100);
        sockets_say(client, "x");
        sockets_hear(server, "x");
        if (i % 2)
            sockets_say(server, "y");
    }
    ck_assert_uint_eq(atomic_load(&host.ended), 0);
}

TEST(timer, client_that_is_paused_does_not_count_as_silent)
{
    size_t sent;

    host.conf.client_idle_timeout_ns = 300 * NS_PER_MS;
    connect_both();
    sent = sockets_stuff(client, 0); /* the server takes nothing */
    PAUSE_MS(1000);
    ck_assert_uint_eq(atomic_load(&host.ended), 0);
    /*
     * Not all of it: once the last byte was read from the client it is silent, and the rest would
     * be lost.
     */
    sockets_hear_pattern(server, 0, sent / 2);
}

TEST(timer, half_closed_client_does_not_time_out)
{
    host.conf.client_idle_timeout_ns = 150 * NS_PER_MS;
    connect_both();
    sockets_end(client);
    sockets_hear_end(server);
    PAUSE_MS(500);
    sockets_say(server, "answer");
    sockets_hear(client, "answer");
    ck_assert_uint_eq(atomic_load(&host.ended), 0);
}

static void *stream(void *arg)
{
    char data[4096] = {0};
    atomic_size_t *sent = arg;
    ssize_t n;

    while ((n = send(server, data, sizeof(data), MSG_NOSIGNAL)) > 0)
        atomic_fetch_add(sent, (size_t)n);
    return NULL;
}

TEST(timer, silent_slow_receiver_is_found_at_most_a_quarter_late)
{
    static char data[60000];
    atomic_size_t sent = 0;
    size_t heard = 0;
    pthread_t thread;
    int64_t at_ns;

    host.conf.client_idle_timeout_ns = 2 * NS_PER_S;
    connect_both();
    sockets_say(client, "x");
    sockets_hear(server, "x");
    at_ns = clock_now_ns();
    ck_assert_int_eq(pthread_create(&thread, NULL, stream, &sent), 0);
    while (recv(server, data, 1, MSG_PEEK | MSG_DONTWAIT) < 0) { /* until its end of file comes */
        ssize_t n = recv(client, data, sizeof(data), MSG_DONTWAIT);

        heard += n > 0 ? (size_t)n : 0;
        PAUSE_MS(2);
        ck_assert_int_lt(since_ms(at_ns), 3500); /* twice the timeout is four seconds */
    }
    ck_assert_int_ge(since_ms(at_ns), 1980);
    ck_assert_uint_gt(atomic_load(&sent), heard); /* it was slow */
    sockets_reset(client);
    client = -1;
    pthread_join(thread, NULL);
    host_expect_end(&host, SESSION_IDLE);
}

/* ---- the first byte ---- */

TEST(timer, client_that_never_sends_ends_the_session)
{
    int64_t at_ns;

    host.conf.first_byte_timeout_ns = 300 * NS_PER_MS;
    at_ns = clock_now_ns();
    connect_both();
    sockets_say(server, "220 ready");
    sockets_hear(client, "220 ready");
    expect_end_after(at_ns, 300, SESSION_IDLE);
}

TEST(timer, one_byte_satisfies_the_first_byte_timeout)
{
    host.conf.first_byte_timeout_ns = 300 * NS_PER_MS;
    connect_both();
    sockets_say(client, "x");
    PAUSE_MS(600);
    sockets_say(server, "y");
    sockets_hear(client, "y");
    ck_assert_uint_eq(atomic_load(&host.ended), 0);
}

TEST(timer, timeouts_of_either_side_begin_with_the_connection_to_the_server)
{
    int64_t at_ns;

    host.conf.first_byte_timeout_ns = 300 * NS_PER_MS;
    host.conf.client_idle_timeout_ns = 300 * NS_PER_MS;
    server_idle_timeout_ns = 300 * NS_PER_MS;
    server_fd = -1;
    client = host_client(&host);
    PAUSE_MS(700);
    ck_assert_uint_eq(atomic_load(&host.ended), 0);
    at_ns = clock_now_ns();
    connect_server();
    expect_end_after(at_ns, 300, SESSION_IDLE);
}

TEST(timer, bytes_sent_before_the_connection_to_the_server_satisfy_the_timeout)
{
    host.conf.first_byte_timeout_ns = 200 * NS_PER_MS;
    server_fd = -1;
    client = host_client(&host);
    sockets_say(client, "early");
    PAUSE_MS(400);
    connect_server();
    sockets_hear(server, "early");
    PAUSE_MS(400);
    ck_assert_uint_eq(atomic_load(&host.ended), 0);
}

/* ---- lifetime ---- */

TEST(timer, busy_session_ends_at_its_maximum_lifetime_without_loss)
{
    int64_t at_ns;

    host.conf.max_lifetime_ns = 3 * NS_PER_S;
    at_ns = clock_now_ns();
    connect_both();
    while (since_ms(at_ns) < 400) {
        sockets_say(client, "x");
        sockets_hear(server, "x");
        sockets_say(server, "y");
        sockets_hear(client, "y");
        PAUSE_MS(10);
    }
    sockets_say(server, "last");
    sockets_hear(client, "last");
    expect_end_after(at_ns, 3000, SESSION_LIFETIME);
}

TEST(timer, maximum_lifetime_ends_a_session_that_waits_for_its_server)
{
    int64_t at_ns = clock_now_ns();

    host.conf.max_lifetime_ns = 200 * NS_PER_MS;
    server_fd = -1;
    client = host_client(&host);
    sockets_hear_end(client);
    ck_assert_int_ge(since_ms(at_ns), 180);
    close(client);
    client = -1;
    host_expect_end(&host, SESSION_LIFETIME);
}

TEST(timer, lifetimes_are_spread_over_the_jitter)
{
    unsigned tenths[10] = {0};
    int clients[SESSIONS];

    host.conf.max_lifetime_ns = 1000 * NS_PER_S;
    host.conf.lifetime_jitter = 40;
    server_fd = -1;
    for (unsigned i = 0; i < SESSIONS; i++)
        clients[i] = host_client(&host);
    for (unsigned i = 0; i < SESSIONS; i++) {
        const struct session *s = &pairs[i]->session;
        int64_t lifetime_ns = s->expires_at_ns - s->began_at_ns;

        ck_assert_int_ge(lifetime_ns, 600 * NS_PER_S);
        ck_assert_int_le(lifetime_ns, 1000 * NS_PER_S);
        tenths[(lifetime_ns - 600 * NS_PER_S - 1) / (40 * NS_PER_S)]++;
        close(clients[i]);
    }
    for (unsigned i = 0; i < 10; i++)
        ck_assert_uint_gt(tenths[i], 0); /* by chance one in 10^8 runs */
}

TEST(timer, lifetime_without_jitter_is_as_configured)
{
    host.conf.max_lifetime_ns = 1000 * NS_PER_S;
    connect_both();
    ck_assert_int_eq(pairs[0]->session.expires_at_ns - pairs[0]->session.began_at_ns,
                     1000 * NS_PER_S);
}

/* ---- what it costs ---- */

TEST(timer, traffic_does_not_move_the_timer)
{
    int64_t at_ns;

    host.conf.idle_timeout_ns = 40 * NS_PER_S;
    host.conf.client_idle_timeout_ns = 80 * NS_PER_S;
    host.conf.first_byte_timeout_ns = 50 * NS_PER_S;
    host.conf.max_lifetime_ns = 100 * NS_PER_S;
    connect_both();
    at_ns = timer_at_ns();
    for (int i = 0; i < 100; i++) {
        sockets_say(client, "x");
        sockets_hear(server, "x");
    }
    ck_assert_int_eq(timer_at_ns(), at_ns);
}

TEST(timer, without_any_timeout_there_is_no_timer)
{
    connect_both();
    sockets_say(client, "x");
    sockets_hear(server, "x");
    ck_assert_int_eq(timer_at_ns(), CLOCK_NEVER);
}

TEST(timer, session_chosen_to_leave_ends_in_time)
{
    int64_t at_ns = clock_now_ns();

    connect_both();
    host_leave_in(&host, 200 * NS_PER_MS);
    sockets_say(client, "still");
    sockets_hear(server, "still");
    sockets_hear_end(client);
    ck_assert_int_ge(since_ms(at_ns), 180);
    sockets_hear_end(server);
    host_expect_end(&host, SESSION_DRAIN);
}

TEST(timer, session_chosen_to_leave_does_not_exceed_its_lifetime)
{
    host.conf.max_lifetime_ns = 2 * NS_PER_S; /* longer than until it is told to leave */
    connect_both();
    host_leave_in(&host, 3600 * NS_PER_S);
    sockets_hear_end(client);
    sockets_hear_end(server);
    host_expect_end(&host, SESSION_DRAIN);
}
