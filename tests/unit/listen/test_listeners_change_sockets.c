/*
 * listen/listeners: sockets that a change opens, shares or closes beside those that are there, and
 * limits that change.
 */
#include <errno.h>
#include <unistd.h>

#include "net/sock.h"
#include "support/fault.h"
#include "support/figures.h"
#include "support/log_lines.h"
#include "support/process.h"
#include "support/queued.h"
#include "support/served.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

GROUP(listeners_change, served_enter, served_leave);

/* ---- reuseport ---- */

TEST(listeners_change, higher_reuseport_opens_sockets_beside_the_first)
{
    served_start(1);
    queued_block_bosses();
    queued_connect_clients(0);
    served.listeners[0].reuseport = 4;
    served_change(1);
    queued_unblock_bosses();
    queued_expect_clients_served();
    ck_assert_uint_eq(listeners_sockets(served.all), 4);
    queued_connect_clients(0);
    queued_expect_clients_served();
}

TEST(listeners_change, prepared_sockets_get_no_clients_before_the_commit)
{
    served_start(1);
    served.listeners[0].reuseport = 4;
    ck_assert_int_eq(served_prepare(1), 0);
    queued_connect_clients(0);
    served_cancel();
    queued_expect_clients_served();
}

/* As after privileges were dropped. */
TEST(listeners_change, higher_reuseport_on_a_socket_of_another_user_is_refused)
{
    unsigned descriptors;
    int rc;

    if (geteuid() != 0)
        return;
    served_start(1);
    descriptors = process_descriptors();
    served.listeners[0].reuseport = 4;
    ck_assert_int_eq(seteuid(65534), 0);
    rc = served_prepare(1);
    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(rc, -EADDRINUSE);
    EXPECT_LOG_LINES("bound as another user: upgrade instead", 1);
    queued_expect_unchanged(descriptors);
}

TEST(listeners_change, surplus_sockets_stay_with_their_clients)
{
    served.listeners[0].reuseport = 4;
    served_start(1);
    close(served_client(0));
    queued_block_bosses();
    queued_connect_clients(0);
    served.listeners[0].reuseport = 1;
    served_change(1);
    queued_unblock_bosses();
    queued_expect_clients_served();
    ck_assert_uint_eq(listeners_sockets(served.all), 4);
    ck_assert_uint_eq(atomic_load(&served.stopped), 0);
    served.listeners[0].reuseport = 4;
    served_change(1);
    ck_assert_uint_eq(listeners_sockets(served.all), 4);
}

static void begin_with(unsigned which)
{
    queued.one = queued.all = served.addresses[0];
    queued.all.u.in.sin_addr.s_addr = INADDR_ANY;
    served.addresses[0] = which == 0 ? queued.one : queued.all;
    served_start(1);
    close(served_client(0));
    UNTIL(atomic_load(&served.ended) == 1);
    served.addresses[1] = which == 0 ? queued.all : queued.one;
    served.listeners[0].addresses = &served.addresses[1];
}

TEST_EACH(listeners_change, a_wildcard_and_an_address_of_its_port_can_replace_each_other, 2)
{
    begin_with(_i);
    queued_block_bosses();
    queued_connect_clients(0);
    served_change(1);
    queued_unblock_bosses();
    queued_expect_clients_served();
    UNTIL(atomic_load(&served.stopped) == 1);
    close(served_client(1));
    queued_connect_clients(1);
    queued_expect_clients_served();
}

TEST_EACH(listeners_change, replaced_socket_stays_open_for_pending_handshakes, 2)
{
    begin_with(_i);
    served_change(1);
    PAUSE_MS(50);
    ck_assert_uint_eq(atomic_load(&served.stopped), 0);
}

TEST_EACH(listeners_change, clients_go_to_the_listening_socket_while_another_is_prepared, 2)
{
    unsigned descriptors;

    begin_with(_i);
    descriptors = process_descriptors();
    ck_assert_int_eq(served_prepare(1), 0);
    queued_connect_clients(0);
    served_cancel();
    queued_expect_clients_served();
    queued_expect_unchanged(descriptors);
}

TEST_EACH(listeners_change, second_process_cannot_bind_the_port_after_the_change, 2)
{
    struct sock_listen_conf alone = {.backlog = 1};
    int fd;

    begin_with(_i);
    served_change(1);
    UNTIL(atomic_load(&served.stopped) == 1);
    ck_assert_int_eq(sock_listen(&fd, &served.addresses[0], &alone), -EADDRINUSE);
    ck_assert_int_eq(sock_listen(&fd, &served.addresses[1], &alone), -EADDRINUSE);
}

TEST_EACH(listeners_change, a_wildcard_beside_an_address_of_its_port_is_refused, 2)
{
    unsigned descriptors;

    begin_with(_i);
    descriptors = process_descriptors();
    served.listeners[0].addresses = &served.addresses[0];
    served.listeners[1].addresses = &served.addresses[1];
    ck_assert_int_eq(served_prepare(2), -EADDRINUSE);
    EXPECT_LOG_LINES(" of listen front is in the way", 1);
    queued_expect_unchanged(descriptors);
}

/* ---- limits ---- */

TEST(listeners_change, a_higher_limit_admits_a_waiting_client)
{
    int in, waiting;

    served.listeners[0].quota.max_connections = 1;
    served_start(1);
    in = served_client(0);
    waiting = sockets_connect(&served.addresses[0]);
    UNTIL(log_lines_with("listen front: max_connections is reached: new clients wait") == 1);
    served.listeners[0].quota.max_connections = 2;
    served_change(1);
    sockets_say(waiting, "x");
    sockets_hear(waiting, "x");
    ck_assert_uint_eq(atomic_load(&served.accepted), 2);
    close(in);
    close(waiting);
}

TEST(listeners_change, limit_added_by_a_change_counts_open_sessions)
{
    int in, second;

    served_start(1);
    in = served_client(0);
    served.listeners[0].quota.max_connections = 1;
    served.listeners[0].over_limit = QUOTA_OVER_RESET;
    served_change(1);
    second = sockets_connect(&served.addresses[0]);
    sockets_hear_reset(second);
    close(second);
    close(in);
    UNTIL(atomic_load(&served.ended) == 1);
    close(served_client(0));
}

TEST(listeners_change, waiting_client_is_admitted_by_the_new_listener_of_its_socket)
{
    int in, waiting;

    served.listeners[0].quota.max_connections = 1;
    served_start(1);
    in = served_client(0);
    waiting = sockets_connect(&served.addresses[0]);
    UNTIL(log_lines_with("max_connections is reached") == 1);
    served.listeners[0].addresses = &served.addresses[1];
    served.listeners[1].addresses = &served.addresses[0];
    served_change(2);
    sockets_say(waiting, "x");
    sockets_hear(waiting, "x");
    ck_assert_uint_eq(atomic_load(&served.accepted_by[1]), 1);
    close(in);
    close(waiting);
}

TEST(listeners_change, counters_of_admission_continue_after_a_change)
{
    int fd;

    served.listeners[0].access.deny_others = true;
    served.listeners[0].on_deny = ADMISSION_CLOSE;
    served_start(1);
    fd = sockets_connect(&served.addresses[0]);
    sockets_hear_end(fd);
    close(fd);
    served.listeners[0].access.deny_others = false;
    served_change(1);
    close(served_client(0));
    figures_log_listeners(served.all);
    EXPECT_LOG_LINES("stats listen front denied=1", 1);
}

TEST(listeners_change, socket_whose_boss_cannot_start_uses_another_boss)
{
    served_start(1);
    close(served_client(0));
    UNTIL(process_loops() > 0);
    fault_plan(FAULT_PTHREAD_CREATE, 0, FAULT_ALWAYS, EAGAIN);
    served_change(2);
    fault_plan(FAULT_PTHREAD_CREATE, 0, 0, 0);
    close(served_client(1));
}
