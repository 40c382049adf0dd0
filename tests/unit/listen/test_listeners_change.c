/*
 * listen/listeners while clients are served: a change is made as a whole or not at all, and no
 * client that waits in a kernel's queue is lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/loop_group.h"
#include "net/sock.h"
#include "stats/access_log.h"
#include "support/fault.h"
#include "support/figures.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/served.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

#define CLIENTS 40

static struct tasks_block blocks[2];
static int clients[CLIENTS];

/* No client is accepted meanwhile. */
static void block_bosses(void)
{
    for (unsigned i = 0; i < 2; i++)
        tasks_block_begin(&blocks[i], loop_group_at(served.boss, i));
}

static void unblock_bosses(void)
{
    for (unsigned i = 0; i < 2; i++)
        tasks_block_end(&blocks[i]);
}

static void connect_clients(unsigned at)
{
    for (unsigned i = 0; i < CLIENTS; i++)
        clients[i] = sockets_connect(&served.addresses[at]);
}

static void expect_clients_served(void)
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        sockets_say(clients[i], "hello");
        sockets_hear(clients[i], "hello");
        close(clients[i]);
    }
    UNTIL(atomic_load(&served.ended) == atomic_load(&served.accepted));
}

/* A change that failed has left all as it was. */
static void expect_unchanged(unsigned descriptors)
{
    ck_assert_uint_eq(process_descriptors(), descriptors);
    close(served_client(0));
    UNTIL(atomic_load(&served.ended) == atomic_load(&served.accepted));
    ck_assert_uint_eq(atomic_load(&served.stopped), 0);
}

static bool exists(unsigned i)
{
    struct stat st;

    return lstat(served.addresses[i].u.un.sun_path, &st) == 0;
}

GROUP(listeners_change, served_enter, served_leave);

/* ---- found again ---- */

TEST(listeners_change, the_same_configuration_keeps_sockets_sessions_and_counters)
{
    unsigned descriptors;
    int fd;

    served_start(2);
    fd = served_client(0);
    descriptors = process_descriptors();
    served_change(2);
    ck_assert_uint_eq(process_descriptors(), descriptors);
    ck_assert_uint_eq(atomic_load(&served.opened), 2);
    sockets_say(fd, "more");
    sockets_hear(fd, "more");
    close(served_client(0));
    UNTIL(atomic_load(&served.ended) == 1);
    figures_log_listeners(served.all);
    EXPECT_LOG_LINES("stats listen front sessions=1 sessions_total=2", 1);
    close(fd);
}

TEST(listeners_change, socket_moves_to_the_listener_that_now_has_its_address)
{
    struct address mine = served.addresses[0];

    served_start(2);
    served.addresses[0] = served.addresses[1];
    served.addresses[1] = mine;
    served_change(2);
    close(served_client(0));
    UNTIL(atomic_load(&served.accepted) == 1);
    ck_assert_uint_eq(atomic_load(&served.accepted_by[0]), 1);
    close(served_client(1));
    UNTIL(atomic_load(&served.accepted) == 2);
    ck_assert_uint_eq(atomic_load(&served.accepted_by[1]), 1);
    ck_assert_uint_eq(atomic_load(&served.opened), 2);
}

TEST(listeners_change, clients_in_the_backlog_of_a_moved_socket_are_served_by_its_new_listener)
{
    served_start(1);
    close(served_client(0));
    block_bosses();
    connect_clients(0);
    served.listeners[0].addresses = &served.addresses[1];
    served.listeners[1].addresses = &served.addresses[0];
    served_change(2);
    unblock_bosses();
    expect_clients_served();
    ck_assert_uint_eq(atomic_load(&served.accepted_by[1]), CLIENTS);
    close(served_client(1));
    ck_assert_uint_eq(atomic_load(&served.accepted_by[0]), 2);
}

TEST(listeners_change, socket_can_move_to_a_new_listener_while_its_old_listener_is_removed)
{
    int fd;

    served_start(1);
    fd = served_client(0);
    served.listeners[0].name = "third";
    served_change(1);
    close(served_client(0));
    ck_assert_uint_eq(atomic_load(&served.accepted_by[2]), 1);
    ck_assert_uint_eq(atomic_load(&served.opened), 1);
    sockets_say(fd, "more");
    sockets_hear(fd, "more");
    close(fd);
}

/* ---- come and go ---- */

TEST(listeners_change, a_new_listener_accepts_after_the_commit)
{
    int fd;

    served_start(1);
    ck_assert_int_eq(served_prepare(2), 0);
    fd = sockets_connect(&served.addresses[1]);
    PAUSE_MS(20);
    ck_assert_uint_eq(atomic_load(&served.accepted), 0);
    served_commit();
    sockets_say(fd, "x");
    sockets_hear(fd, "x");
    close(fd);
    ck_assert_uint_eq(listeners_sockets(served.all), 2);
}

TEST(listeners_change, a_removed_listener_refuses_clients_and_keeps_its_sessions)
{
    int fd;

    served_start(2);
    fd = served_client(1);
    served_change(1);
    UNTIL(atomic_load(&served.stopped) == 1);
    ck_assert(served_refused(1));
    EXPECT_LOG_LINES("listen other: 127.0.0.1:", 1); /* removed */
    ck_assert_uint_eq(listeners_sockets(served.all), 1);
    sockets_say(fd, "more");
    sockets_hear(fd, "more");
    close(fd);
    UNTIL(atomic_load(&served.ended) == 1);
    close(served_client(0));
}

TEST(listeners_change, clients_in_the_backlog_of_a_removed_listener_are_served)
{
    served_start(2);
    close(served_client(0));
    close(served_client(1));
    block_bosses();
    connect_clients(1);
    served_change(1);
    unblock_bosses();
    expect_clients_served();
    UNTIL(atomic_load(&served.stopped) == 1);
}

TEST(listeners_change, a_removed_listener_refuses_clients_before_its_boss_has_a_turn)
{
    served_start(2);
    close(served_client(0));
    close(served_client(1));
    block_bosses();
    connect_clients(1);
    served_change(1);
    ck_assert(served_refused(1));
    unblock_bosses();
    expect_clients_served();
}

/* So many that the boss runs the tail task of the change before it closes the socket. */
TEST(listeners_change, backlog_of_a_removed_listener_is_served_by_a_busy_boss)
{
    static struct tasks_counted many[2][1500];

    served_log(0);
    served_start(1);
    close(served_client(0));
    block_bosses();
    connect_clients(0);
    for (unsigned i = 0; i < 2; i++) {
        tasks_counted_init_all(many[i], ARRAY_LEN(many[i]));
        for (unsigned n = 0; n < ARRAY_LEN(many[i]); n++)
            ck_assert_int_eq(
                loop_submit(loop_group_at(served.boss, i), LOOP_CONTROL, &many[i][n].task), 0);
    }
    served_change(0);
    unblock_bosses();
    expect_clients_served();
    UNTIL(atomic_load(&served.stopped) == 1);
    UNTIL(!access_log_used(served.logs[0]));
}

TEST(listeners_change, an_address_that_is_closing_can_be_bound_again)
{
    served_start(2);
    close(served_client(1));
    for (unsigned i = 0; i < 20; i++) {
        served_change(1);
        served_change(2);
        close(served_client(1));
    }
    UNTIL(atomic_load(&served.stopped) == 20);
    ck_assert_uint_eq(atomic_load(&served.opened), 22);
}

TEST(listeners_change, listener_removed_and_added_again_has_new_counters)
{
    int fd;

    served_start(2);
    fd = served_client(1);
    served_change(1);
    UNTIL(atomic_load(&served.stopped) == 1);
    served_change(2);
    figures_log_listeners(served.all);
    EXPECT_LOG_LINES("stats listen other sessions=0 sessions_total=0", 1);
    close(fd);
}

TEST(listeners_change, all_listeners_can_be_removed_and_added_again)
{
    served_start(1);
    served_change(0);
    UNTIL(atomic_load(&served.stopped) == 1);
    figures_log_listeners(served.all);
    ck_assert_uint_eq(log_lines_with("stats listen"), 0);
    served_change(3);
    for (unsigned i = 0; i < 3; i++)
        close(served_client(i));
}

/* ---- refused ---- */

TEST(listeners_change, an_address_of_another_process_is_refused)
{
    unsigned descriptors;

    served_start(1);
    ck_assert_int_eq(listen(served.holders[2], 1), 0);
    descriptors = process_descriptors();
    ck_assert_int_eq(served_prepare(3), -EADDRINUSE);
    EXPECT_LOG_LINES(": cannot listen: Address already in use", 1);
    EXPECT_LOG_LINES("listen third: 127.0.0.1:", 1);
    expect_unchanged(descriptors);
    ck_assert(served_refused(1));
}

TEST(listeners_change, an_address_given_twice_is_refused)
{
    unsigned descriptors;

    served_start(1);
    descriptors = process_descriptors();
    served.addresses[1] = served.addresses[0];
    ck_assert_int_eq(served_prepare(2), -EADDRINUSE);
    EXPECT_LOG_LINES(": cannot listen: listen front has this address too", 1);
    expect_unchanged(descriptors);
    ck_assert_uint_eq(atomic_load(&served.accepted_by[0]), 1);
}

TEST(listeners_change, path_of_another_kind_of_file_is_refused_and_left_alone)
{
    unsigned descriptors;
    int fd;

    served_start(1);
    descriptors = process_descriptors();
    sockets_path(&served.addresses[1], "file");
    fd = open(served.addresses[1].u.un.sun_path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    close(fd);
    ck_assert_int_eq(served_prepare(2), -ENOTSOCK);
    EXPECT_LOG_LINES("the path is another file, not a socket", 1);
    expect_unchanged(descriptors);
    ck_assert(exists(1));
    ck_assert_int_eq(unlink(served.addresses[1].u.un.sun_path), 0);
}

static int attempt(void *cookie)
{
    struct listeners_change *change;
    int rc = listeners_prepare(served.all, cookie, &change);

    if (rc == 0)
        listeners_cancel(change);
    return rc;
}

static void run_fault(void *arg)
{
    const struct listeners_sources sources = {
        .list = served.conf.listeners, .n = 3, .accept_batch = served.conf.boss.accept_batch};
    unsigned *allocations = arg;

    *allocations = fault_each_allocation(attempt, (void *)&sources);
}

TEST(listeners_change, any_failed_allocation_leaves_all_as_it_was)
{
    unsigned descriptors, allocations = 0;

    served_start(1);
    close(served_client(0));
    UNTIL(atomic_load(&served.ended) == 1);
    descriptors = process_descriptors();
    served.listeners[0].reuseport = 3;
    served.listeners[1].clients =
        (struct client_table_conf){.max_clients = 16, .each.max_connections = 1};
    sockets_path(&served.addresses[2], "memory");
    loop_runner_call(served.control, run_fault, &allocations);
    ck_assert_uint_gt(allocations, 12);
    expect_unchanged(descriptors);
    ck_assert_uint_eq(atomic_load(&served.descriptors.used), 1);
    ck_assert(!exists(2));
    ck_assert(served_refused(1));
    served_change(3); /* nothing is left in the way */
    for (unsigned i = 0; i < 3; i++)
        close(served_client(i));
}

TEST(listeners_change, change_without_descriptors_for_its_sockets_is_refused)
{
    unsigned descriptors;

    served_start(1);
    descriptors = process_descriptors();
    served.descriptors.max = atomic_load(&served.descriptors.used) + 1;
    ck_assert_int_eq(served_prepare(3), -EMFILE);
    EXPECT_LOG_LINES("listen third: 127.0.0.1:", 1);
    expect_unchanged(descriptors);
    served.descriptors.max = 1000;
}

/* ---- cancelled ---- */

TEST(listeners_change, cancel_closes_prepared_sockets)
{
    unsigned descriptors;

    served_start(1);
    descriptors = process_descriptors();
    served.listeners[0].reuseport = 4;
    ck_assert_int_eq(served_prepare(3), 0);
    ck_assert_uint_eq(process_descriptors(), descriptors + 5);
    served_cancel();
    expect_unchanged(descriptors);
    ck_assert(served_refused(1));
    ck_assert_uint_eq(atomic_load(&served.opened), 1);
}

TEST(listeners_change, cancel_removes_only_its_own_socket_files)
{
    unsigned descriptors;

    sockets_path(&served.addresses[0], "kept");
    sockets_path(&served.addresses[1], "new");
    served_start(1);
    descriptors = process_descriptors();
    ck_assert_int_eq(served_prepare(2), 0);
    ck_assert(exists(1));
    served_cancel();
    ck_assert(!exists(1));
    ck_assert(exists(0));
    expect_unchanged(descriptors);
    served_change(2);
    close(served_client(1));
    served_change(1);
    UNTIL(atomic_load(&served.stopped) == 1);
    ck_assert(!exists(1));
    close(served_client(0));
}

/* ---- reuseport ---- */

TEST(listeners_change, higher_reuseport_opens_sockets_beside_the_first)
{
    served_start(1);
    block_bosses();
    connect_clients(0);
    served.listeners[0].reuseport = 4;
    served_change(1);
    unblock_bosses();
    expect_clients_served();
    ck_assert_uint_eq(listeners_sockets(served.all), 4);
    connect_clients(0);
    expect_clients_served();
}

TEST(listeners_change, prepared_sockets_get_no_clients_before_the_commit)
{
    served_start(1);
    served.listeners[0].reuseport = 4;
    ck_assert_int_eq(served_prepare(1), 0);
    connect_clients(0);
    served_cancel();
    expect_clients_served();
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
    expect_unchanged(descriptors);
}

TEST(listeners_change, surplus_sockets_stay_with_their_clients)
{
    served.listeners[0].reuseport = 4;
    served_start(1);
    close(served_client(0));
    block_bosses();
    connect_clients(0);
    served.listeners[0].reuseport = 1;
    served_change(1);
    unblock_bosses();
    expect_clients_served();
    ck_assert_uint_eq(listeners_sockets(served.all), 4);
    ck_assert_uint_eq(atomic_load(&served.stopped), 0);
    served.listeners[0].reuseport = 4;
    served_change(1);
    ck_assert_uint_eq(listeners_sockets(served.all), 4);
}

/* ---- a wildcard in place of an address, or the reverse ---- */

static struct address one, all;

static void begin_with(unsigned which)
{
    one = all = served.addresses[0];
    all.u.in.sin_addr.s_addr = INADDR_ANY;
    served.addresses[0] = which == 0 ? one : all;
    served_start(1);
    close(served_client(0));
    UNTIL(atomic_load(&served.ended) == 1);
    served.addresses[1] = which == 0 ? all : one;
    served.listeners[0].addresses = &served.addresses[1];
}

TEST_EACH(listeners_change, a_wildcard_and_an_address_of_its_port_can_replace_each_other, 2)
{
    begin_with(_i);
    block_bosses();
    connect_clients(0);
    served_change(1);
    unblock_bosses();
    expect_clients_served();
    UNTIL(atomic_load(&served.stopped) == 1);
    close(served_client(1));
    connect_clients(1);
    expect_clients_served();
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
    connect_clients(0);
    served_cancel();
    expect_clients_served();
    expect_unchanged(descriptors);
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
    expect_unchanged(descriptors);
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

/* ---- while it stops ---- */

TEST(listeners_change, change_committed_during_a_stop_closes_its_sockets)
{
    served_start(1);
    ck_assert_int_eq(served_prepare(3), 0);
    listeners_stop(served.all);
    served_commit();
    UNTIL(atomic_load(&served.stopped) == 1);
    ck_assert_uint_eq(atomic_load(&served.opened), 1);
    for (unsigned i = 0; i < 3; i++)
        ck_assert(served_refused(i));
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
