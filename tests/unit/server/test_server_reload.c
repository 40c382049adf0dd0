/*
 * server/server_reload: another configuration for a server that runs: all of it is used, or nothing
 * has changed.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/fault.h"
#include "support/process.h"
#include "support/server_confs.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "unit/server/running.h"

#define CHURN_RELOADS 60

/* Two configurations: the first is used first. */
static struct upstream_server_conf servers[2];
static struct upstream_conf upstreams[2][2];
static struct listener_conf listeners[2][3];
static struct server_conf confs[2];

static struct upstream_conf upstream_of(const char *name, unsigned n)
{
    return (struct upstream_conf){
        .name = name, .servers = &servers[n], .n_servers = 1, .connect_timeout_ns = 5 * NS_PER_S};
}

static struct server_conf server_of(unsigned which, unsigned workers, unsigned n_listeners,
                                    unsigned n_upstreams)
{
    return (struct server_conf){SMALL_LOOPS(workers),          SMALL_EXECUTORS(1),
                                .listeners = listeners[which], .n_listeners = n_listeners,
                                .upstreams = upstreams[which], .n_upstreams = n_upstreams};
}

/* The second: "front" has another server, "echo" another address, "more" comes. */
static void configure(void)
{
    servers[0] = running_upstream_server("a", 0);
    servers[1] = running_upstream_server("b", 1);
    upstreams[0][0] = upstream_of("back", 0);
    upstreams[1][0] = upstream_of("back", 1);
    upstreams[1][1] = upstream_of("other", 0);
    listeners[0][0] = running_listener("front", 0, "back");
    listeners[0][1] = running_listener("echo", 1, NULL);
    listeners[1][0] = running_listener("front", 0, "back");
    listeners[1][1] = running_listener("echo", 2, NULL);
    listeners[1][2] = running_listener("more", 1, "other");
    confs[0] = server_of(0, 2, 2, 1);
    confs[1] = server_of(1, 3, 3, 2);
}

static void setup(void)
{
    running_enter();
    configure();
    running_start(&confs[0]);
}

static int reload(void *cookie)
{
    return running_reload(cookie);
}

static bool is_refused(unsigned address)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool refused =
        connect(fd, &running.addresses[address].u.sa, running.addresses[address].len) < 0;

    close(fd);
    return refused;
}

/* A new client of "front" reaches this server, and only this one. */
static void expect_server(unsigned n)
{
    int client = sockets_connect(&running.addresses[0]);
    int fd = accept(running.listening[n], NULL, NULL);

    ck_assert_int_ge(fd, 0);
    sockets_say(client, "hello");
    sockets_hear(fd, "hello");
    close(client);
    close(fd);
}

static void expect_echo(unsigned address)
{
    int client = sockets_connect(&running.addresses[address]);

    running_exchange(client);
    close(client);
}

static void expect_first(void)
{
    expect_server(0);
    expect_echo(1);
    ck_assert(is_refused(2));
}

static void expect_second(void)
{
    expect_server(1);
    expect_echo(2);
}

GROUP(reload, setup, running_leave);

TEST(reload, changes_servers_addresses_listeners_and_threads)
{
    expect_first();
    ck_assert_int_eq(reload(&confs[1]), 0);
    expect_second();
    ck_assert_int_eq(reload(&confs[0]), 0);
    expect_first();
}

TEST(reload, failed_allocation_changes_nothing)
{
    unsigned descriptors;

    expect_first();
    UNTIL(server_sessions(running.server) == 0);
    descriptors = process_descriptors();
    ck_assert_uint_gt(fault_each_allocation(reload, &confs[1]), 20);
    expect_second();
    ck_assert_int_eq(reload(&confs[0]), 0);
    UNTIL(process_descriptors() <= descriptors + 5); /* a parked worker's */
}

TEST(reload, failed_allocation_closes_no_socket_in_use)
{
    for (unsigned skip = 0;; skip++) {
        int rc;

        fault_plan(FAULT_MEMORY, skip, 1, ENOMEM);
        rc = reload(&confs[1]);
        fault_plan(FAULT_MEMORY, 0, 0, 0);
        if (rc == 0)
            return;
        ck_assert_int_eq(rc, -ENOMEM);
        expect_echo(1);
        UNTIL(server_sessions(running.server) == 0);
    }
}

TEST(reload, sessions_of_removed_listeners_and_servers_stay_open)
{
    int client = sockets_connect(&running.addresses[0]);
    int fd = accept(running.listening[0], NULL, NULL);
    int echo = sockets_connect(&running.addresses[1]);

    sockets_say(client, "x");
    sockets_hear(fd, "x");
    running_exchange(echo);
    for (unsigned i = 1; i < 6; i++)
        ck_assert_int_eq(reload(&confs[i % 2]), 0);
    sockets_say(client, "still");
    sockets_hear(fd, "still");
    running_exchange(echo);
    close(client);
    close(fd);
    close(echo);
    UNTIL(server_sessions(running.server) == 0);
}

/* Each of the second one's three threads keeps one, also the one that comes. */
TEST(reload, begins_and_ends_spare_connections)
{
    int spares[3];

    upstreams[1][0].spare = (struct upstream_spares_conf){.keep = 3, .max_age_ns = 3600 * NS_PER_S};
    ck_assert_int_eq(reload(&confs[1]), 0);
    for (unsigned i = 0; i < 3; i++)
        spares[i] = sockets_accept(running.listening[1]);
    ck_assert_int_eq(reload(&confs[0]), 0);
    for (unsigned i = 0; i < 3; i++) {
        sockets_hear_end(spares[i]);
        close(spares[i]);
    }
}

TEST(reload, opens_spare_connections_for_a_listener_that_uses_the_upstream_now)
{
    int spare;

    upstreams[0][0].spare = upstreams[1][0].spare =
        (struct upstream_spares_conf){.keep = 1, .max_age_ns = 3600 * NS_PER_S};
    listeners[0][0] = running_listener("front", 0, NULL);
    upstreams[1][0] = upstreams[0][0];
    ck_assert_int_eq(reload(&confs[0]), 0);
    ck_assert_int_eq(reload(&confs[1]), 0);
    spare = sockets_accept(running.listening[0]);
    ck_assert_int_eq(reload(&confs[0]), 0);
    sockets_hear_end(spare);
    close(spare);
}

TEST(reload, reload_given_up_changes_nothing_or_all)
{
    int rc = running_begin_reload(&confs[1]);

    ck_assert_int_eq(rc, 0);
    server_reload_give_up(running.server);
    rc = running_await(rc);
    ck_assert(rc == 0 || rc == -ECANCELED);
    if (rc == 0)
        expect_second();
    else
        expect_first();
}

static _Atomic bool churning;

/* Clients of an echo that is always there, one after the other. */
static void *churn(void *cookie)
{
    while (atomic_load(&churning)) {
        int fd = sockets_connect(&running.addresses[1]);

        running_exchange(fd);
        close(fd);
    }
    return cookie;
}

TEST(reload, under_churn_loses_no_client)
{
    pthread_t thread;

    listeners[1][2] = running_listener("more", 1, NULL); /* its socket moves from "echo" and back */
    atomic_store(&churning, true);
    ck_assert_int_eq(pthread_create(&thread, NULL, churn, NULL), 0);
    for (unsigned i = 1; i <= CHURN_RELOADS; i++)
        ck_assert_int_eq(reload(&confs[i % 2]), 0);
    atomic_store(&churning, false);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}
