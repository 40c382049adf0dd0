/*
 * sessions/carry_over for sessions with a server: it stays theirs when their listener gets another
 * upstream, or another service.
 */
#include <unistd.h>

#include "base/clock.h"
#include "engine/loop_group.h"
#include "stats/access_log.h"
#include "support/figures.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/served.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "upstream/upstream.h"

#define UPSTREAMS 2

static struct address backs[UPSTREAMS];
static int listening[UPSTREAMS];
static struct upstream_server_conf servers[UPSTREAMS];
static struct upstream_conf confs[UPSTREAMS];
static struct upstream *upstreams[UPSTREAMS];
static unsigned users; /* of an upstream without sessions and listeners */

static struct upstream *find(void *cookie, const char *name)
{
    (void)cookie;
    return upstreams[name[0] - 'a'];
}

static unsigned users_of(unsigned i)
{
    return ref_count(&upstreams[i]->references);
}

static void setup(void)
{
    served_enter();
    for (unsigned i = 0; i < UPSTREAMS; i++) {
        listening[i] = sockets_listen(&backs[i], 16);
        servers[i] = (struct upstream_server_conf){.id = "x",
                                                   .address_text = "there",
                                                   .addresses = &backs[i],
                                                   .n_addresses = 1,
                                                   .weight = 1};
        confs[i] = (struct upstream_conf){.name = i == 0 ? "a" : "b",
                                          .servers = &servers[i],
                                          .n_servers = 1,
                                          .connect_timeout_ns = 5 * NS_PER_S};
        ck_assert_int_eq(upstream_create(&upstreams[i], &confs[i],
                                         &(struct upstream_env){.workers = served.workers}),
                         0);
    }
    users = users_of(0);
    served.find_upstream = find;
    served.conf.upstreams = confs;
    served.conf.n_upstreams = UPSTREAMS;
    served_log(0);
}

static void close_upstreams(void)
{
    for (unsigned i = 0; i < UPSTREAMS; i++) {
        ck_assert_uint_eq(users_of(i), users);
        upstream_destroy(upstreams[i]);
        close(listening[i]);
    }
}

static void teardown(void)
{
    served.before_loops_go = close_upstreams;
    served_leave();
}

static void use_upstream(unsigned i)
{
    served.listeners[0].service = LISTENER_PROXY;
    served.listeners[0].upstream = confs[i].name;
}

/* A client of listener 0, and its server's side. */
static int proxied_client(unsigned i, int *server)
{
    int fd = sockets_connect(&served.addresses[0]);

    *server = sockets_accept(listening[i]);
    return fd;
}

static void expect_pair(int client, int server)
{
    sockets_say(client, "there");
    sockets_hear(server, "there");
    sockets_say(server, "back");
    sockets_hear(client, "back");
}

GROUP(carry_over_proxied, setup, teardown);

TEST(carry_over_proxied, a_session_keeps_its_server_when_its_listener_gets_another_upstream)
{
    int clients[2], behind[2];

    use_upstream(0);
    served_start(1);
    clients[0] = proxied_client(0, &behind[0]);
    use_upstream(1);
    served_log(1);
    served_change(1);
    UNTIL(!access_log_used(served.logs[0]));
    ck_assert_uint_gt(users_of(0), users); /* the session */
    expect_pair(clients[0], behind[0]);
    clients[1] = proxied_client(1, &behind[1]);
    expect_pair(clients[1], behind[1]);
    for (unsigned i = 0; i < 2; i++) {
        close(clients[i]);
        close(behind[i]);
    }
    UNTIL(users_of(0) == users);
}

TEST(carry_over_proxied, sessions_of_the_previous_service_kind_keep_their_settings)
{
    int echo, client, behind;

    served_start(1);
    echo = served_client(0);
    use_upstream(0);
    served_log(1);
    served_change(1);
    client = proxied_client(0, &behind);
    expect_pair(client, behind);
    sockets_say(echo, "more");
    sockets_hear(echo, "more");
    ck_assert(access_log_used(served.logs[0]));
    figures_log_listeners(served.all);
    EXPECT_LOG_LINES("stats listen front sessions=2 sessions_total=2", 1);
    close(echo);
    UNTIL(!access_log_used(served.logs[0]));
    close(client);
    close(behind);
}

TEST(carry_over_proxied, sessions_of_a_service_kind_get_the_settings_when_it_is_configured_again)
{
    int echo;

    served_start(1);
    echo = served_client(0);
    use_upstream(0);
    served_change(1);
    served.listeners[0].service = LISTENER_ECHO;
    served.listeners[0].upstream = NULL;
    served_log(1);
    served_change(1);
    UNTIL(!access_log_used(served.logs[0]));
    UNTIL(users_of(0) == users);
    sockets_say(echo, "more");
    sockets_hear(echo, "more");
    close(echo);
}

static void do_shorten(void *arg)
{
    (void)arg;
    confs[0].idle_timeout_ns = 50 * NS_PER_MS;
}

TEST(carry_over_proxied, idle_timeout_of_an_upstream_is_taken_from_the_new_configuration)
{
    int client, behind;

    use_upstream(0);
    served_start(1);
    client = proxied_client(0, &behind);
    loop_runner_call(loop_group_at(served.workers, 0), do_shorten, NULL); /* its session reads it */
    served_change(1);
    sockets_hear_end(client);
    close(client);
    close(behind);
}

TEST(carry_over_proxied, a_mirror_of_a_listener_is_referenced_too)
{
    served.listeners[0].mirror = "b";
    served.listeners[0].mirror_buffer_bytes = 1000;
    served_start(1);
    ck_assert_uint_eq(users_of(1), users + 1);
    served.listeners[0].mirror = NULL;
    served_change(1);
    UNTIL(users_of(1) == users);
    figures_log_listeners(served.all);
    EXPECT_LOG_LINES("stats listen front mirrors=0", 1); /* counters stay */
}
