/*
 * service/session_access_log: what a session's lines say, when they come, and that there is one for
 * each end.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/splice.h"
#include "service/echo.h"
#include "service/session_access_log.h"
#include "support/host.h"
#include "support/log_lines.h"
#include "support/logged.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "upstream/upstream.h"
#include "upstream/upstream_change.h"

static bool says(const char *what)
{
    bool found;

    pthread_mutex_lock(&logged.lock);
    found = strstr(logged.text, what) != NULL;
    pthread_mutex_unlock(&logged.lock);
    return found;
}

GROUP(lines, NULL, logged_teardown);

TEST(lines, echo_session_has_one_line_at_its_end)
{
    int client;

    logged_open_host(&echo_ops,
                     "$connection $listener $upstream $server $server_address $bytes_in "
                     "$bytes_out $queue_time $connect_time $first_byte_time $tries $reason");
    client = host_client(&logged.host);
    sockets_say(client, "hello");
    sockets_hear(client, "hello");
    PAUSE_MS(30);
    ck_assert_uint_eq(logged_lines(), 0);
    close(client);
    logged_expect("1 front - - - 5 5 - - - 0 client_fin\n");
}

TEST(lines, line_of_a_proxied_session_names_its_server)
{
    char wanted[256], there[ADDRESS_TEXT_BYTES];
    int client, server;

    logged_open_proxy("$upstream $server $server_address $bytes_in $bytes_out $tries $reason");
    client = host_client(&logged.host);
    server = sockets_accept(logged.listening);
    sockets_say(client, "question");
    sockets_hear(server, "question");
    sockets_say(server, "answer");
    sockets_hear(client, "answer");
    close(server);
    sockets_hear_end(client);
    close(client);
    snprintf(wanted, sizeof(wanted), "back b %s 8 6 2 upstream_fin\n",
             address_format(there, sizeof(there), &logged.address[1]));
    logged_expect(wanted);
}

TEST(lines, line_of_a_client_reset_in_the_queue_has_its_queue_time)
{
    int holder, server, client;
    double queue_s;

    logged.servers[1].max_connections = 1;
    logged.conf.queue_length = 1;
    logged.conf.queue_timeout_ns = 3600 * NS_PER_S;
    logged_open_proxy("$queue_time $reason");
    holder = host_client(&logged.host);
    server = sockets_accept(logged.listening);
    client = host_client(&logged.host);
    UNTIL(wait_queue_length(&logged.upstream->waiting) == 1);
    PAUSE_MS(50);
    sockets_reset(client);
    UNTIL(logged_lines() == 1);
    ck_assert_int_eq(sscanf(logged.text, "%lf client_reset\n", &queue_s), 1);
    ck_assert(queue_s >= 0.05);
    close(holder);
    close(server);
}

/* The server says something 50 ms after it was connected, and hangs up another 50 ms later. */
static void expect_times(enum splice_mode splice)
{
    double connect_s, first_s, duration_s;
    int client, server;

    logged_open_proxy("$connect_time $first_byte_time $duration $queue_time");
    logged.host.conf.splice = splice;
    client = host_client(&logged.host);
    server = sockets_accept(logged.listening);
    PAUSE_MS(50);
    sockets_say(server, "x");
    sockets_hear(client, "x");
    PAUSE_MS(50);
    sockets_say(server, "y");
    sockets_hear(client, "y");
    close(server);
    close(client);
    UNTIL(logged_lines() == 1);
    ck_assert_int_eq(sscanf(logged.text, "%lf %lf %lf -\n", &connect_s, &first_s, &duration_s), 3);
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

    logged_open_proxy("$first_byte_time $server $reason");
    client = host_client(&logged.host);
    server = sockets_accept(logged.listening);
    close(client);
    sockets_hear_end(server);
    close(server);
    logged_expect("- b client_fin\n");
}

TEST(lines, session_that_reaches_no_server_is_logged_with_the_last_server_tried)
{
    int client;

    logged.conf.n_servers = 1;
    logged_open_proxy("$upstream $server $server_address $connect_time $tries $reason");
    client = host_client(&logged.host);
    sockets_hear_reset(client);
    close(client);
    logged_expect("back a - - 1 connect_refused\n");
}

static void remove_servers(void *arg)
{
    static struct upstream_conf next;
    struct upstream_change *change;

    (void)arg;
    next = logged.conf;
    next.n_servers = 0;
    ck_assert_int_eq(upstream_change_prepare(&change, logged.upstream, &next), 0);
    upstream_change_commit(change);
    (void)upstream_sweep_unused(logged.upstream);
}

/* It pauses, to try again; meanwhile the server that it tried is removed. */
TEST(lines, last_server_tried_is_named_even_if_it_was_removed)
{
    struct upstream_server *a;
    int client;

    logged.conf.n_servers = 1;
    logged.conf.retries = 1;
    logged.conf.retry_budget = 100;
    logged.conf.retry_timeout_ns = NS_PER_S;
    logged_open_proxy("$server $reason");
    a = membership_now(&logged.upstream->membership)->servers[0];
    client = host_client(&logged.host);
    UNTIL(ref_count(&a->references) > 1 && endpoint_active(&a->endpoint) == 0);
    loop_runner_call(logged.host.loop, remove_servers, NULL);
    sockets_hear_reset(client);
    close(client);
    logged_expect("a connect_refused\n");
}

TEST(lines, open_session_has_a_line_each_interval)
{
    int client;

    logged_open_host(&echo_ops, "$connection $reason $bytes_in $duration");
    logged.host.service.access_log_interval_ns = 100 * NS_PER_MS;
    client = host_client(&logged.host);
    sockets_say(client, "x");
    sockets_hear(client, "x");
    UNTIL(logged_lines() >= 3);
    close(client);
    host_expect_end(&logged.host, SESSION_CLIENT_FIN);
    UNTIL(says("client_fin"));
    for (char *line = strtok(logged.text, "\n"), *next; line; line = next) {
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

    logged_open_host(&echo_ops, "$reason");
    logged.host.service.access_log_interval_ns = 50 * NS_PER_MS;
    logged.host.conf.idle_timeout_ns = 2 * NS_PER_S;
    client = host_client(&logged.host);
    sockets_hear_end(client);
    close(client);
    host_expect_end(&logged.host, SESSION_IDLE);
    UNTIL(says("idle"));
    ck_assert_uint_ge(logged_lines(), 3);
}

TEST(lines, session_that_no_worker_adopted_has_its_line)
{
    int ours, theirs;
    struct session *s;

    logged_open_host(&echo_ops, "$connection $client $worker $duration $reason");
    sockets_unix(&ours, &theirs);
    ck_assert_int_eq(echo_ops.create(&s, &logged.host.service), 0);
    s->client_fd = ours;
    session_set_reason(s, SESSION_DRAIN);
    session_refuse(s);
    close(theirs);
    logged_expect("1 - - 0.000000 drain\n");
}

TEST(lines, refused_client_has_its_line)
{
    struct address client;

    logged_open_host(&echo_ops, "$connection $client $listener $bytes_in $reason");
    sockets_loopback(&client, 9);
    session_access_log_turned_away(&logged.host.service, &client, NULL, SESSION_LIMIT);
    logged_expect("1 127.0.0.1 front 0 limit\n");
}

TEST(lines, each_log_has_lines_in_its_format_if_its_condition_holds)
{
    int client;

    logged_open_host(&echo_ops, "all $connection $reason");
    logged_add_log("errors $connection $reason");
    logged_add_log("data $connection $bytes_in");
    logged.logs[1].filter.only = ACCESS_LOG_ERRORS;
    logged.logs[2].filter.only = ACCESS_LOG_DATA;
    client = host_client(&logged.host);
    sockets_say(client, "hello");
    sockets_hear(client, "hello");
    close(client);
    UNTIL(logged_lines() == 2);
    client = host_client(&logged.host);
    sockets_reset(client);
    UNTIL(logged_lines() == 4);
    ck_assert_str_eq(logged.text, "all 1 client_fin\ndata 3 5\nall 4 client_reset\n"
                                  "errors 5 client_reset\n");
}

TEST(lines, refused_client_has_a_line_in_each_log_that_wants_it)
{
    struct address client;

    logged_open_host(&echo_ops, "denied $reason");
    logged_add_log("data $reason");
    logged_add_log("all $reason");
    logged.logs[0].filter.only = ACCESS_LOG_DENIED;
    logged.logs[1].filter.only = ACCESS_LOG_DATA;
    sockets_loopback(&client, 9);
    session_access_log_turned_away(&logged.host.service, &client, NULL, SESSION_LIMIT);
    UNTIL(logged_lines() == 2);
    ck_assert_str_eq(logged.text, "denied limit\nall limit\n");
}

TEST(lines, line_at_connect_has_the_server_and_is_written_only_where_wanted)
{
    char wanted[512], there[ADDRESS_TEXT_BYTES];
    int client, server;

    logged_open_proxy("$connection $server_address $tries $reason");
    logged_add_log("end $reason");
    logged.logs[0].at_connect = true;
    client = host_client(&logged.host);
    server = sockets_accept(logged.listening);
    UNTIL(logged_lines() == 1);
    address_format(there, sizeof(there), &logged.address[1]);
    close(server);
    sockets_hear_end(client);
    close(client);
    UNTIL(logged_lines() == 3);
    snprintf(wanted, sizeof(wanted), "1 %s 2 open\n1 %s 2 upstream_fin\nend upstream_fin\n", there,
             there);
    ck_assert_str_eq(logged.text, wanted);
}

TEST(lines, echo_session_has_a_line_at_connect)
{
    int client;

    logged_open_host(&echo_ops, "$bytes_in $reason");
    logged.logs[0].at_connect = true;
    client = host_client(&logged.host);
    UNTIL(logged_lines() == 1);
    close(client);
    UNTIL(logged_lines() == 2);
    ck_assert_str_eq(logged.text, "0 open\n0 client_fin\n");
}
