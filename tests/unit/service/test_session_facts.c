/*
 * service/session_facts: values of both connections, every address tried, and the times of ends of
 * file.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/sock.h"
#include "service/echo.h"
#include "service/proxy.h"
#include "service/session.h"
#include "service/session_facts.h"
#include "stats/access_log_record.h"
#include "support/host.h"
#include "support/logged.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

GROUP(facts, NULL, logged_teardown);

TEST(facts, line_has_figures_of_both_connections)
{
    unsigned long rtt[2], var[2], again[2], in, out;
    int client, server;

    logged_open_proxy("$client_rtt $client_rtt_var $client_retransmits $server_rtt $server_rtt_var "
                      "$server_retransmits $server_bytes_in $server_bytes_out");
    client = host_client(&logged.host);
    server = sockets_accept(logged.listening);
    sockets_say(client, "question");
    sockets_hear(server, "question");
    sockets_say(server, "answer");
    sockets_hear(client, "answer");
    sockets_reset(server);
    UNTIL(logged_lines() == 1);
    ck_assert_int_eq(sscanf(logged.text, "%lu %lu %lu %lu %lu %lu %lu %lu\n", &rtt[0], &var[0],
                            &again[0], &rtt[1], &var[1], &again[1], &in, &out),
                     8);
    ck_assert(rtt[0] > 0 && rtt[1] > 0); /* the variance of few may be 0 */
    ck_assert_uint_eq(again[0] + again[1], 0);
    ck_assert_uint_eq(in, 6);
    ck_assert_uint_eq(out, 8);
    close(client);
}

TEST(facts, line_has_our_address_and_every_address_tried)
{
    char wanted[512], there[2][ADDRESS_TEXT_BYTES], here[ADDRESS_TEXT_BYTES];
    struct address ours;
    int client, server;

    logged_open_proxy("$source_address $attempts $reason");
    client = host_client(&logged.host);
    server = sockets_accept(logged.listening);
    ck_assert_int_eq(sock_peer(&ours, server), 0);
    close(client);
    sockets_hear_end(server);
    close(server);
    snprintf(wanted, sizeof(wanted), "%s %s=refused,%s=ok client_fin\n",
             address_format(here, sizeof(here), &ours),
             address_format(there[0], sizeof(there[0]), &logged.address[0]),
             address_format(there[1], sizeof(there[1]), &logged.address[1]));
    logged_expect(wanted);
}

TEST(facts, attempts_that_do_not_fit_are_left_out)
{
    struct session *s;
    int ours, theirs;

    logged_open_host(&proxy_ops, "$attempts");
    sockets_unix(&ours, &theirs);
    ck_assert_int_eq(proxy_ops.create(&s, &logged.host.service), 0);
    s->client_fd = ours;
    sockets_loopback(&logged.address[0], 7);
    for (unsigned i = 0; i < 100; i++)
        session_facts_tried(session_facts_of(s), &logged.address[0],
                            i == 0 ? -ETIMEDOUT : -ECONNREFUSED);
    session_refuse(s);
    UNTIL(logged_lines() == 1);
    ck_assert_int_eq(strncmp(logged.text, "127.0.0.1:7=timeout,127.0.0.1:7=refused,", 40), 0);
    ck_assert_uint_gt(strlen(logged.text), ACCESS_LOG_RECORD_ATTEMPTS_BYTES - 25);
    ck_assert_uint_le(strlen(logged.text), ACCESS_LOG_RECORD_ATTEMPTS_BYTES);
    ck_assert_str_eq(logged.text + strlen(logged.text) - 9, "=refused\n");
    close(theirs);
}

TEST(facts, line_has_the_times_of_both_ends_of_file)
{
    double client_fin, server_fin, half_closed;
    int client, server;

    logged_open_proxy("$client_fin_time $server_fin_time $half_closed_time");
    client = host_client(&logged.host);
    server = sockets_accept(logged.listening);
    shutdown(client, SHUT_WR);
    sockets_hear_end(server);
    PAUSE_MS(30);
    close(server);
    sockets_hear_end(client);
    UNTIL(logged_lines() == 1);
    ck_assert_int_eq(sscanf(logged.text, "%lf %lf %lf\n", &client_fin, &server_fin, &half_closed),
                     3);
    ck_assert(server_fin >= client_fin + 0.03);
    ck_assert_double_eq_tol(half_closed, server_fin - client_fin, 0.000002);
    close(client);
}

TEST(facts, time_of_an_end_of_file_that_did_not_come_is_missing)
{
    char client_fin[32], server_fin[32], half_closed[32];
    int client, server;

    logged_open_proxy("$client_fin_time $server_fin_time $half_closed_time");
    client = host_client(&logged.host);
    server = sockets_accept(logged.listening);
    shutdown(server, SHUT_WR);
    sockets_hear_end(client);
    sockets_reset(client);
    UNTIL(logged_lines() == 1);
    ck_assert_int_eq(sscanf(logged.text, "%31s %31s %31s\n", client_fin, server_fin, half_closed),
                     3);
    ck_assert_str_eq(client_fin, "-");
    ck_assert_str_ne(server_fin, "-");
    ck_assert_str_ne(half_closed, "-");
    close(server);
}

TEST(facts, echo_session_has_no_figures_of_a_server)
{
    int client;

    logged_open_host(&echo_ops, "$server_rtt $server_retransmits $server_bytes_in $source_address "
                                "$attempts $server_fin_time");
    client = host_client(&logged.host);
    close(client);
    logged_expect("- - - - - -\n");
}
