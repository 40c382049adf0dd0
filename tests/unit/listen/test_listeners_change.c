/*
 * listen/listeners while clients are served: a change is made as a whole or not at all, and no
 * client that waits in a kernel's queue is lost.
 */
#include <unistd.h>

#include "engine/loop_group.h"
#include "stats/access_log.h"
#include "support/figures.h"
#include "support/log_lines.h"
#include "support/process.h"
#include "support/queued.h"
#include "support/served.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

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
    queued_block_bosses();
    queued_connect_clients(0);
    served.listeners[0].addresses = &served.addresses[1];
    served.listeners[1].addresses = &served.addresses[0];
    served_change(2);
    queued_unblock_bosses();
    queued_expect_clients_served();
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
    queued_block_bosses();
    queued_connect_clients(1);
    served_change(1);
    queued_unblock_bosses();
    queued_expect_clients_served();
    UNTIL(atomic_load(&served.stopped) == 1);
}

TEST(listeners_change, a_removed_listener_refuses_clients_before_its_boss_has_a_turn)
{
    served_start(2);
    close(served_client(0));
    close(served_client(1));
    queued_block_bosses();
    queued_connect_clients(1);
    served_change(1);
    ck_assert(served_refused(1));
    queued_unblock_bosses();
    queued_expect_clients_served();
}

/* So many that the boss runs the tail task of the change before it closes the socket. */
TEST(listeners_change, backlog_of_a_removed_listener_is_served_by_a_busy_boss)
{
    static struct tasks_counted many[2][1500];

    served_log(0);
    served_start(1);
    close(served_client(0));
    queued_block_bosses();
    queued_connect_clients(0);
    for (unsigned i = 0; i < 2; i++) {
        tasks_counted_init_all(many[i], ARRAY_LEN(many[i]));
        for (unsigned n = 0; n < ARRAY_LEN(many[i]); n++)
            ck_assert_int_eq(
                loop_submit(loop_group_at(served.boss, i), LOOP_CONTROL, &many[i][n].task), 0);
    }
    served_change(0);
    queued_unblock_bosses();
    queued_expect_clients_served();
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
