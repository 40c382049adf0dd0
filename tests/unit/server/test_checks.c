/*
 * server/checks: what a start waits for, and what follows when a server fails or passes a check.
 */
#include <unistd.h>

#include "base/clock.h"
#include "check/checker.h"
#include "engine/loop_group.h"
#include "service/proxy.h"
#include "sessions/worker.h"
#include "support/checked.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "upstream/upstream.h"

#define NEVER_NS (3600 * NS_PER_S)

static void start_checked(void)
{
    checked.conf.checks.health.initial = HEALTH_STARTS_CHECKED;
    checked_start();
}

/* ---- start ---- */

GROUP(checks, checked_setup, checked_teardown);

TEST(checks, start_does_not_wait_for_checks_of_servers_that_start_up)
{
    checked.conf.checks.health.interval_ns = NEVER_NS;
    checked_start();
    ck_assert_uint_eq(checked_flags_of(0), 0);
}

TEST(checks, start_waits_for_the_first_check_of_each_server)
{
    checked.conf.checks.health.interval_ns = NEVER_NS;
    start_checked();
    ck_assert_uint_eq(checked_flags_of(0), 0);
    ck_assert_uint_eq(checked_flags_of(1), ENDPOINT_DOWN);
}

TEST(checks, slow_first_checks_are_warned_of)
{
    int filler;

    ck_assert_int_eq(listen(checked.fds[0], 0), 0);
    filler = sockets_connect(&checked.addresses[0]); /* the backlog is full: no answer */
    checked.conf.checks.health.initial = HEALTH_STARTS_CHECKED;
    checked_create();
    checked_begin(50 * NS_PER_MS);
    EXPECT_LOG_LINES("have no result after ", 1);
    close(filler);
}

/* 0: the server is disabled; 1: its upstream has no checks. */
TEST_EACH(checks, server_without_checks_is_not_checked, 2)
{
    if (_i == 0)
        checked.servers[1].disabled = true;
    else
        checked.conf.checks.kind = UPSTREAM_CHECK_OFF;
    start_checked();
    loop_runner_turn(checked.control);
    ck_assert(!checker_has(checked_server_at(1)->target));
    ck_assert_int_eq(checker_has(checked_server_at(0)->target), _i == 0);
    ck_assert_uint_eq(checked_flags_of(1), 0);
}

/* ---- changes ---- */

TEST(checks, server_that_fails_a_check_is_down_until_a_check_passes)
{
    checked_start();
    UNTIL(checked_flags_of(1) == ENDPOINT_DOWN);
    ck_assert_int_eq(listen(checked.fds[1], 16), 0);
    UNTIL(checked_flags_of(1) == 0);
    ck_assert_uint_eq(checked_flags_of(0), 0);
}

TEST(checks, passed_check_ends_an_ejection)
{
    struct balancer_pick_state pick;
    struct upstream_server *server;

    checked.conf.ejection = (struct ejection_conf){
        .failures = 1, .time_ns = NEVER_NS, .time_max_ns = NEVER_NS, .max_percent = 100};
    checked_create();
    balancer_begin(&pick, 0);
    ck_assert_int_eq(upstream_pick(checked.upstream, &pick, &server), 0);
    upstream_leave(checked.upstream, server, UPSTREAM_FAILED);
    ck_assert_ptr_eq(server, checked_server_at(0));
    ck_assert_uint_eq(checked_flags_of(0), ENDPOINT_EJECTED);
    checked_begin(UNTIL_LIMIT_NS);
    UNTIL(checked_flags_of(0) == 0);
    UNTIL(log_lines_with("server a: ejection over: a check has passed") == 1); /* logged after */
}

/* A client of a session on the worker. */
static int new_client(void)
{
    struct session *s;
    int ours, theirs;

    sockets_tcp(&ours, &theirs);
    ck_assert_int_eq(proxy_ops.create(&s, &checked.service), 0);
    s->client_fd = ours;
    sockets_loopback(&s->peer, 1);
    ck_assert_int_eq(worker_hand_over(loop_group_at(checked.workers, 0), s), 0);
    return theirs;
}

/* 0: on_down = keep; 1: close */
TEST_EACH(checks, sessions_of_a_server_that_fails_a_check_are_kept_or_closed, 2)
{
    int client, server;

    checked.conf.checks.on_down = _i == 0 ? UPSTREAM_DOWN_KEEP : UPSTREAM_DOWN_CLOSE;
    checked_start();
    client = new_client();
    server = sockets_accept(checked.fds[0]);
    sockets_say(client, "question");
    sockets_hear(server, "question");
    close(checked.fds[0]);
    checked.fds[0] = -1;
    UNTIL(checked_flags_of(0) == ENDPOINT_DOWN);
    if (_i == 0) {
        sockets_say(server, "answer");
        sockets_hear(client, "answer");
    } else {
        sockets_hear_reset(client);
        UNTIL(atomic_load(&checked.ended) == 1);
    }
    close(client);
    close(server);
}

TEST(checks, queued_clients_get_a_server_that_passes_its_check)
{
    int holder, held, client, server;

    checked.servers[0].max_connections = checked.servers[1].max_connections = 1;
    checked.conf.queue_length = 1;
    checked.conf.queue_timeout_ns = NEVER_NS;
    checked_start();
    UNTIL(checked_flags_of(1) == ENDPOINT_DOWN);
    holder = new_client();
    held = sockets_accept(checked.fds[0]);
    client = new_client();
    UNTIL(wait_queue_length(&checked.upstream->waiting) == 1);
    ck_assert_int_eq(listen(checked.fds[1], 16), 0);
    server = sockets_accept(checked.fds[1]);
    sockets_say(client, "question");
    sockets_hear(server, "question");
    close(holder);
    close(held);
    close(client);
    close(server);
}

/* ---- names ---- */

static void do_lead_to(void *address)
{
    struct membership_place place = {.list = address, .n = 1, .weight = 1};
    struct membership *m = &checked.upstream->membership;

    ck_assert_int_eq(membership_update(m, membership_find_line(m, "b"), &place, 1, NULL), 1);
}

TEST(checks, server_of_a_name_is_checked_while_the_name_resolves_to_it)
{
    struct upstream_server *server;

    checked.servers[1].names = UPSTREAM_NAME_EACH;
    checked_start();
    loop_runner_call(checked.control, do_lead_to, &checked.addresses[1]);
    server = checked_server_at(1);
    UNTIL(checked_flags_of(1) == ENDPOINT_DOWN);
    upstream_server_hold(server);
    loop_runner_call(checked.control, do_lead_to, &checked.addresses[0]);
    ck_assert_ptr_ne(checked_server_at(1), server);
    ck_assert(!checker_has(server->target));
    ck_assert_uint_eq(endpoint_load(&server->endpoint), ENDPOINT_ABSENT);
    ck_assert(checker_has(checked_server_at(1)->target));
    upstream_server_release(server);
}

static void do_name(void *arg)
{
    (void)arg;
    ck_assert_int_eq(
        upstream_set_addresses(checked.upstream, checked_server_at(1), &checked.addresses[0], 1),
        1);
}

TEST(checks, server_is_checked_as_soon_as_its_address_is_known)
{
    checked.servers[1].names = UPSTREAM_NAME_ONE;
    checked.servers[1].n_addresses = 0;
    checked.conf.checks.health.initial = HEALTH_STARTS_CHECKED;
    checked.conf.checks.health.interval_ns = NEVER_NS;
    checked_create();
    checked_begin(50 * NS_PER_MS);
    ck_assert_uint_eq(checked_flags_of(1), ENDPOINT_DOWN | ENDPOINT_ABSENT);
    loop_runner_call(checked.control, do_name, NULL);
    UNTIL(checked_flags_of(1) == 0);
}

TEST(checks, servers_that_were_not_checked_stay_up_until_their_first_check_fails)
{
    checked.other_conf = checked.conf;
    checked.conf.checks.kind = UPSTREAM_CHECK_OFF;
    checked_start();
    checked.other_conf.checks.health.initial = HEALTH_STARTS_CHECKED;
    checked.other_conf.checks.health.fall = 1000000;
    checked_change_to(&checked.other_conf);
    ck_assert(checker_has(checked_server_at(0)->target));
    UNTIL(checked_flags_of(1) == ENDPOINT_DOWN);
    ck_assert_uint_eq(checked_flags_of(0), 0);
}
