/*
 * server/server: upstream servers that have a host name: when it starts, while it runs, and when it
 * is to end.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "server/server.h"
#include "server/server_conf.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/names.h"
#include "support/server_confs.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "upstream/upstream.h"

enum { ECHO, FRONT, BACK, PORTS };

static struct server *server;
static struct address addresses[PORTS];
static int fds[PORTS]; /* that hold the ports; BACK's listens */
static char back_name[32];
static struct listener_conf listeners[] = {
    [ECHO] = {.name = "echo", .service = LISTENER_ECHO},
    [FRONT] = {.name = "front", .service = LISTENER_PROXY, .upstream = "back"},
};
static struct upstream_server_conf back = {
    .id = "a", .address_text = back_name, .names = UPSTREAM_NAME_EACH, .weight = 1};
static struct upstream_conf upstream = {
    .name = "back", .servers = &back, .n_servers = 1, .connect_timeout_ns = NS_PER_S};
static const struct server_conf conf = {SMALL_LOOPS(1),         SMALL_EXECUTORS(2),
                                        .listeners = listeners, .n_listeners = ARRAY_LEN(listeners),
                                        .upstreams = &upstream, .n_upstreams = 1};

/* The one server of the upstream is back.test with the port of ${which}. */
static void lead_to(unsigned which)
{
    snprintf(back_name, sizeof(back_name), "back.test:%u", ntohs(addresses[which].u.in.sin_port));
}

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
    for (unsigned i = 0; i < PORTS; i++)
        fds[i] = i == BACK ? sockets_listen(&addresses[i], 5) : sockets_bound(&addresses[i]);
    for (unsigned i = 0; i < ARRAY_LEN(listeners); i++) {
        listeners[i].addresses = &addresses[i];
        listeners[i].n_addresses = 1;
        listeners[i].backlog = 16;
        listeners[i].reuseport = 1;
    }
    lead_to(BACK);
}

static void create(void)
{
    ck_assert_int_eq(server_create(&server, &conf, &(struct server_events){.drained = NULL}), 0);
}

static void start(void)
{
    create();
    ck_assert_int_eq(server_start(server), 0);
}

static void teardown(void)
{
    unsigned cut;

    if (server) {
        ck_assert_int_eq(server_stop(server, &cut), 0);
        server_destroy(server);
    }
    for (unsigned i = 0; i < PORTS; i++)
        close(fds[i]);
}

static int client_of(unsigned listener)
{
    return sockets_connect(&addresses[listener]);
}

static void exchange(int fd)
{
    sockets_say(fd, "hello");
    sockets_hear(fd, "hello");
}

/* A client of the proxy, which is connected to the server. */
static void expect_proxied(void)
{
    int client = client_of(FRONT), behind = sockets_accept(fds[BACK]);

    sockets_say(client, "question");
    sockets_hear(behind, "question");
    close(client);
    close(behind);
}

GROUP(names, setup, teardown);

TEST(names, server_given_by_name_is_resolved_before_the_first_client)
{
    names_set("back.test", "127.0.0.1");
    start();
    expect_proxied();
    ck_assert_uint_eq(names_asked(), 1);
}

TEST(names, unresolved_name_delays_neither_the_start_nor_other_listeners)
{
    int client, reset;

    names_set("back.test", NAMES_UNKNOWN);
    start();
    client = client_of(ECHO);
    exchange(client);
    reset = client_of(FRONT);
    sockets_hear_reset(reset);
    EXPECT_LOG_LINES("trying again within 10 s", 1);
    EXPECT_LOG_LINES("no server is available; the client is reset", 1);
    close(client);
    close(reset);
}

TEST(names, name_that_resolves_to_its_own_listener_is_not_used)
{
    names_set("back.test", "127.0.0.2,127.0.0.1");
    lead_to(FRONT);
    start();
    EXPECT_LOG_LINES("is a listener of this process", 1);
    EXPECT_LOG_LINES("the name is known: 127.0.0.2:", 1);
}

TEST(names, name_that_resolves_to_another_listener_is_used)
{
    int client;

    names_set("back.test", "127.0.0.1");
    lead_to(ECHO);
    start();
    client = client_of(FRONT);
    exchange(client);
    close(client);
}

TEST(names, server_does_not_start_without_a_lookup_thread)
{
    names_set("back.test", "127.0.0.1");
    create();
    fault_plan(FAULT_PTHREAD_CREATE, 1, FAULT_ALWAYS, EAGAIN); /* the control loop has one */
    ck_assert_int_eq(server_start(server), -EAGAIN);
    EXPECT_LOG_LINES("lookups: cannot start a thread", 1);
    ck_assert_uint_eq(names_asked(), 0);
}

TEST(names, silent_name_server_delays_start_and_end_for_seconds_only)
{
    int64_t began_at_ns = clock_now_ns();
    unsigned cut;
    int client;

    names_set("back.test", NAMES_SILENT);
    start();
    ck_assert_int_ge(since_ms(began_at_ns), 3000);
    EXPECT_LOG_LINES("the name is still being looked up", 1);
    client = client_of(ECHO);
    exchange(client);
    ck_assert_int_eq(server_stop(server, &cut), -EBUSY);
    ck_assert_uint_eq(cut, 1);
    EXPECT_LOG_LINES("look up a host name", 1);
    sockets_hear_reset(client);
    _exit(EXIT_SUCCESS); /* as the daemon does: the lookup uses what could be freed */
}

TEST(names, name_resolved_late_is_used_from_then_on)
{
    int client;

    names_set("back.test", NAMES_SILENT);
    start();
    client = client_of(FRONT);
    sockets_hear_reset(client);
    close(client);
    names_set("back.test", "127.0.0.1");
    UNTIL(log_lines_with("the name is known: 127.0.0.1:") == 1);
    expect_proxied();
}
