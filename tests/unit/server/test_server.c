/*
 * server/server: boss and workers together, from create to destroy; whatever happens, nothing is
 * left behind.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/server.h"
#include "server/server_conf.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/process.h"
#include "support/server_confs.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "upstream/upstream.h"

static struct server *server;
static struct address addresses[2], upstream_address;
static struct listener_conf listeners[2];
static struct upstream_server_conf upstream_server = {.id = "a",
                                                      .address_text = "there",
                                                      .addresses = &upstream_address,
                                                      .n_addresses = 1,
                                                      .weight = 1};
static struct upstream_conf upstream = {
    .name = "back", .servers = &upstream_server, .n_servers = 1, .connect_timeout_ns = NS_PER_S};
static struct server_conf conf;
static atomic_uint drained;
static int holders[2]; /* of the addresses' ports */
static unsigned before;

static void on_drained(void *cookie)
{
    ck_assert_ptr_eq(cookie, &conf);
    ck_assert_uint_eq(server_sessions(server), 0);
    atomic_fetch_add(&drained, 1);
}

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
    for (int i = 0; i < 2; i++) {
        holders[i] = sockets_bound(&addresses[i]);
        listeners[i] = (struct listener_conf){.name = i ? "front" : "echo",
                                              .addresses = &addresses[i],
                                              .n_addresses = 1,
                                              .service = i ? LISTENER_PROXY : LISTENER_ECHO,
                                              .upstream = i ? "back" : NULL,
                                              .backlog = 128,
                                              .reuseport = 1};
    }
    conf = (struct server_conf){SMALL_LOOPS(3),   SMALL_EXECUTORS(2),     .listeners = listeners,
                                .n_listeners = 1, .upstreams = &upstream, .n_upstreams = 1};
    before = process_descriptors();
}

static int create(void)
{
    struct server_events events = {.drained = on_drained, .cookie = &conf};

    return server_create(&server, &conf, &events);
}

static void start(void)
{
    ck_assert_int_eq(create(), 0);
    ck_assert_int_eq(server_start(server), 0);
}

static void destroy(void)
{
    server_destroy(server);
    server = NULL;
}

/* How many sessions that cut. */
static unsigned stop_server(void)
{
    unsigned cut;

    ck_assert_int_eq(server_stop(server, &cut), 0);
    return cut;
}

static void teardown(void)
{
    if (server) {
        (void)stop_server();
        destroy();
    }
    UNTIL(process_loops() == 0);
    ck_assert_uint_eq(process_descriptors(), before);
    for (int i = 0; i < 2; i++)
        close(holders[i]);
}

static void exchange(int fd)
{
    sockets_say(fd, "hello");
    sockets_hear(fd, "hello");
}

static int echo_client(void)
{
    int fd = sockets_connect(&addresses[0]);

    exchange(fd);
    return fd;
}

static int clients[60];

static void close_clients(int n)
{
    for (int i = 0; i < n; i++)
        close(clients[i]);
}

static bool refused(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0), rc;

    rc = connect(fd, &addresses[0].u.sa, addresses[0].len);
    close(fd);
    return rc < 0 && errno == ECONNREFUSED;
}

/* ---- create and start ---- */

GROUP(server, setup, teardown);

TEST(server, a_new_server_listens_and_has_no_thread)
{
    ck_assert_int_eq(create(), 0);
    UNTIL(process_loops() == 0);
    close(sockets_connect(&addresses[0]));
    ck_assert_uint_eq(server_sessions(server), 0);
    destroy(); /* which needs no stop */
}

TEST(server, threads_start_with_the_first_client_each_worker_gets)
{
    start();
    for (unsigned i = 0; i < 5; i++) {
        clients[i] = echo_client();
        UNTIL(process_loops() == 2 + (i < 3 ? i + 1 : 3)); /* with boss and control loop */
    }
    ck_assert_uint_eq(server_sessions(server), 5);
    close_clients(5);
    UNTIL(server_sessions(server) == 0);
}

TEST(server, echo_and_proxy_listeners_work_in_one_server)
{
    int listening = sockets_listen(&upstream_address, 5), client, behind, echo;

    conf.n_listeners = 2;
    start();
    client = sockets_connect(&addresses[1]);
    behind = sockets_accept(listening);
    echo = echo_client();
    sockets_say(client, "question");
    sockets_hear(behind, "question");
    exchange(echo);
    close(client);
    sockets_hear_end(behind);
    close(behind);
    close(echo);
    close(listening);
}

TEST(server, a_port_in_use_fails_the_whole_server_and_is_named)
{
    conf.n_listeners = 2;
    ck_assert_int_eq(listen(holders[1], 1), 0);
    ck_assert_int_eq(create(), -EADDRINUSE);
    EXPECT_LOG_LINES("listen front: 127.0.0.1:", 1);
    ck_assert(refused()); /* the first listener's port is closed again */
}

TEST_EACH(server, without_descriptors_the_server_fails_and_leaks_none, 9)
{
    process_allow_descriptors((unsigned)_i);
    ck_assert_int_eq(create(), -EMFILE);
    process_allow_any_descriptors();
    ck_assert_uint_ge(log_lines_with("Too many open files"), 1);
}

TEST_RANGE(server, boss_that_cannot_start_is_reported_and_the_server_can_be_stopped, 1, 4)
{
    ck_assert_int_eq(create(), 0);
    fault_plan(FAULT_PTHREAD_CREATE, 1, (unsigned)_i, EAGAIN); /* the control loop has one */
    ck_assert_int_eq(server_start(server), -EAGAIN);
    EXPECT_LOG_LINES("cannot start a boss thread", 1);
}

TEST(server, control_loop_that_cannot_start_is_reported_and_the_server_can_be_stopped)
{
    ck_assert_int_eq(create(), 0);
    fault_plan(FAULT_PTHREAD_CREATE, 0, 1, EAGAIN);
    ck_assert_int_eq(server_start(server), -EAGAIN);
    EXPECT_LOG_LINES("cannot start the control thread", 1);
}

TEST(server, second_boss_that_cannot_start_is_reported)
{
    conf.boss.threads = conf.n_listeners = 2;
    ck_assert_int_eq(create(), 0);
    fault_plan(FAULT_PTHREAD_CREATE, 2, 1, EAGAIN);
    ck_assert_int_eq(server_start(server), -EAGAIN);
}

TEST(server, boss_threads_beyond_the_sockets_are_warned_of)
{
    conf.boss.threads = 2;
    ck_assert_int_eq(create(), 0);
    EXPECT_LOG_LINES("boss: 2 threads, only 1 listen sockets", 1);
}

TEST(server, reuseport_spreads_clients_over_the_boss_threads)
{
    conf.boss.threads = 2;
    listeners[0].reuseport = 2;
    start();
    for (int i = 0; i < 40; i++)
        clients[i] = echo_client();
    UNTIL(process_loops() == 3 + 3);
    close_clients(40);
}

/* ---- when something lacks ---- */

TEST(server, client_of_a_worker_that_cannot_start_gets_the_next_worker)
{
    int client;

    start();
    UNTIL(process_loops() == 2);
    fault_plan(FAULT_PTHREAD_CREATE, 0, 2, EAGAIN);
    client = echo_client();
    ck_assert_uint_eq(fault_calls(FAULT_PTHREAD_CREATE), 5);
    close(client);
}

TEST(server, a_client_that_no_worker_takes_is_reset_and_the_next_is_served)
{
    int client;

    start();
    UNTIL(process_loops() == 2);
    fault_plan(FAULT_PTHREAD_CREATE, 0, FAULT_ALWAYS, EAGAIN);
    client = sockets_connect(&addresses[0]);
    sockets_hear_reset(client);
    close(client);
    EXPECT_LOG_LINES("no worker accepts a client: max_pending_tasks is reached, or no "
                     "thread can be started",
                     1);
    ck_assert_uint_eq(fault_calls(FAULT_PTHREAD_CREATE), 5); /* control, boss, each worker once */
    UNTIL(server_sessions(server) == 0);
    fault_plan(FAULT_PTHREAD_CREATE, 0, 0, 0);
    close(echo_client());
}

TEST(server, at_the_limit_of_descriptors_clients_wait_and_none_is_reset)
{
    for (int i = 0; i < 60; i++)
        clients[i] = socket(AF_INET, SOCK_STREAM, 0);
    before = process_descriptors();
    process_allow_descriptors(60); /* for the server and its sessions */
    start();
    for (int i = 0; i < 60; i++)
        ck_assert_int_eq(connect(clients[i], &addresses[0].u.sa, addresses[0].len), 0);
    UNTIL(log_lines_with("cannot accept") == 1);
    ck_assert_uint_lt(server_sessions(server), 60);
    for (int i = 0; i < 60; i++) { /* each in its turn, when others have left */
        exchange(clients[i]);
        close(clients[i]);
    }
    before -= 60;
    process_allow_any_descriptors();
}

/* ---- drain ---- */

TEST(server, a_server_without_sessions_is_drained_at_once)
{
    start();
    server_drain(server);
    UNTIL(atomic_load(&drained) == 1);
    ck_assert(refused());
    server_drain(server);
    PAUSE_MS(20);
    ck_assert_uint_eq(atomic_load(&drained), 1);
}

/* Sockets and sessions may all be gone while it runs. */
TEST(server, server_without_listeners_is_drained_when_told_and_not_before)
{
    conf.n_listeners = 0;
    start();
    PAUSE_MS(20);
    ck_assert_uint_eq(atomic_load(&drained), 0);
    server_drain(server);
    ck_assert_uint_eq(atomic_load(&drained), 1);
    server_drain(server);
    ck_assert_uint_eq(stop_server(), 0);
    destroy();
    ck_assert_uint_eq(atomic_load(&drained), 1);
}

TEST(server, draining_refuses_new_clients_and_lets_open_sessions_finish)
{
    int client;

    start();
    client = echo_client();
    server_drain(server);
    UNTIL(refused());
    exchange(client);
    ck_assert_uint_eq(atomic_load(&drained), 0);
    close(client);
    UNTIL(atomic_load(&drained) == 1);
    ck_assert_uint_eq(stop_server(), 0);
    ck_assert_uint_eq(atomic_load(&drained), 1);
    destroy();
}

TEST(server, silent_echo_client_does_not_delay_a_drain)
{
    int client;

    start();
    client = echo_client();
    server_drain(server);
    sockets_hear_end(client);
    close(client);
    UNTIL(atomic_load(&drained) == 1);
}

TEST(server, clients_queued_in_the_kernel_are_served_during_a_drain)
{
    ck_assert_int_eq(create(), 0);
    for (int i = 0; i < 30; i++)
        clients[i] = sockets_connect(&addresses[0]);
    ck_assert_int_eq(server_start(server), 0);
    server_drain(server);
    for (int i = 0; i < 30; i++) {
        exchange(clients[i]);
        close(clients[i]);
    }
    UNTIL(atomic_load(&drained) == 1);
}

/* ---- stop ---- */

TEST(server, stopping_resets_every_session_and_returns_their_number)
{
    start();
    for (int i = 0; i < 20; i++)
        clients[i] = echo_client();
    ck_assert_uint_eq(stop_server(), 20);
    ck_assert_uint_eq(server_sessions(server), 0);
    UNTIL(process_loops() == 0);
    for (int i = 0; i < 20; i++) {
        sockets_hear_reset(clients[i]);
        close(clients[i]);
    }
    destroy();
}

TEST(server, stopping_cuts_off_a_drain)
{
    int client;

    start();
    client = echo_client();
    sockets_stuff(client, 0); /* it will never be finished */
    server_drain(server);
    ck_assert_uint_eq(stop_server(), 1);
    ck_assert_uint_eq(atomic_load(&drained), 1); /* told before the stop returned */
    destroy();
    close(client);
}

TEST(server, a_server_that_was_never_started_can_be_stopped)
{
    ck_assert_int_eq(create(), 0);
    ck_assert_uint_eq(stop_server(), 0);
    destroy();
}

static atomic_bool storm_over;

static void *storm(void *arg)
{
    while (!atomic_load(&storm_over)) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);

        if (connect(fd, &addresses[0].u.sa, addresses[0].len) == 0)
            (void)!write(fd, "x", 1);
        close(fd);
    }
    return arg;
}

TEST_EACH(server, stop_under_connection_load_leaks_nothing, 2)
{
    pthread_t threads[3];
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    sigaction(SIGPIPE, &ignore, NULL);
    start();
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, storm, NULL);
    PAUSE_MS(100);
    if (_i)
        server_drain(server);
    (void)stop_server();
    ck_assert_uint_eq(server_sessions(server), 0);
    atomic_store(&storm_over, true);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

TEST(server, destroying_null_is_allowed)
{
    server_destroy(NULL);
}
