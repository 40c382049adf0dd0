/* service/proxy: what a session and its end say about the server that it was sent to. */
#include <unistd.h>

#include "support/log_lines.h"
#include "support/proxied.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

/* How many sessions server ${i} has, and whether it is left out. */
static uint32_t load_of(unsigned i)
{
    return endpoint_load(&proxied_state(i)->endpoint);
}

/* Server a comes first, and is left out after two sessions that fail in a row. */
static void open_upstream_that_ejects(bool resets)
{
    proxied.conf.balance = BALANCER_FIRST;
    proxied.conf.ejection = (struct ejection_conf){.failures = 2,
                                                   .time_ns = 100 * NS_PER_S,
                                                   .time_max_ns = 100 * NS_PER_S,
                                                   .max_percent = 50,
                                                   .resets = resets};
    proxied_open(2);
}

GROUP(outcome, proxied_enter, proxied_leave);

TEST(outcome, a_session_counts_at_its_server_from_the_attempt_to_its_end)
{
    int client, server;

    proxied_add(0, PROXIED_REFUSES);
    proxied_add(1, PROXIED_ANSWERS);
    proxied.conf.balance = BALANCER_FIRST;
    proxied_open(2);
    client = host_client(&proxied.host);
    server = sockets_accept(proxied.fds[1]);
    sockets_say(client, "x");
    sockets_hear(server, "x");
    ck_assert_uint_eq(load_of(0), 0);
    ck_assert_uint_eq(load_of(1), 1);
    close(client);
    close(server);
    UNTIL(load_of(1) == 0);
    ck_assert_uint_eq(atomic_load(&proxied.upstream->group.load), 0);
}

TEST(outcome, server_that_refuses_connections_is_ejected)
{
    proxied_add(0, PROXIED_REFUSES);
    proxied_add(1, PROXIED_ANSWERS);
    open_upstream_that_ejects(false);
    proxied_expect_served_by(1);
    ck_assert_uint_eq(load_of(0), 0);
    proxied_expect_served_by(1);
    ck_assert_uint_eq(load_of(0), ENDPOINT_EJECTED);
    ck_assert_uint_eq(
        log_lines_with(
            "upstream back: server a: ejected for 100 s: connections failed in a row: 2"),
        1);
    proxied_expect_served_by(1);
}

/* A client is sent to server a, which says ${answer} and resets the connection. */
static void expect_answer_and_reset(const char *answer)
{
    int client = host_client(&proxied.host), server = sockets_accept(proxied.fds[0]);

    sockets_say(client, "x");
    sockets_hear(server, "x");
    sockets_say(server, answer);
    sockets_hear(client, answer);
    sockets_reset(server);
    sockets_hear_reset(client);
    close(client);
    host_expect_end(&proxied.host, SESSION_UPSTREAM_RESET);
    UNTIL((load_of(0) & ENDPOINT_COUNT_MASK) == 0);
}

TEST(outcome, server_that_resets_before_its_first_byte_is_ejected)
{
    proxied_add(0, PROXIED_ANSWERS);
    proxied_add(1, PROXIED_ANSWERS);
    open_upstream_that_ejects(true);
    expect_answer_and_reset("");
    ck_assert_uint_eq(load_of(0), 0);
    expect_answer_and_reset("");
    ck_assert_uint_eq(load_of(0), ENDPOINT_EJECTED);
    proxied_expect_served_by(1);
}

TEST(outcome, resets_eject_no_server_unless_configured)
{
    proxied_add(0, PROXIED_ANSWERS);
    proxied_add(1, PROXIED_ANSWERS);
    open_upstream_that_ejects(false);
    for (int i = 0; i < 3; i++)
        expect_answer_and_reset("");
    ck_assert_uint_eq(load_of(0), 0);
}

TEST(outcome, server_that_resets_after_its_first_byte_is_not_ejected)
{
    proxied_add(0, PROXIED_ANSWERS);
    proxied_add(1, PROXIED_ANSWERS);
    open_upstream_that_ejects(true);
    for (int i = 0; i < 3; i++) {
        expect_answer_and_reset("");
        expect_answer_and_reset("y"); /* which makes the row begin anew, too */
    }
    ck_assert_uint_eq(load_of(0), 0);
}

TEST(outcome, client_that_disconnects_counts_neither_for_nor_against_the_server)
{
    proxied_add(0, PROXIED_ANSWERS);
    proxied_add(1, PROXIED_ANSWERS);
    open_upstream_that_ejects(true);
    for (int i = 0; i < 4; i++) {
        int client = host_client(&proxied.host), server = sockets_accept(proxied.fds[0]);

        sockets_say(client, "x");
        sockets_hear(server, "x");
        if (i % 2)
            sockets_reset(client);
        else
            close(client);
        close(server);
        UNTIL(atomic_load(&proxied.host.ended) == atomic_load(&proxied.host.adopted));
        UNTIL((load_of(0) & ENDPOINT_COUNT_MASK) == 0);
    }
    ck_assert_uint_eq(load_of(0), 0);
}
