/*
 * server/server_loops: an administrator's number of workers, where these accept: their listen
 * sockets come and move with them; what fails changes nothing; what ends the number.
 */
#include <errno.h>

#include "engine/loop.h"
#include "engine/loop_group.h"
#include "listen/listeners.h"
#include "server/server_admin.h"
#include "server/server_parts.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/process.h"
#include "support/server_confs.h"
#include "support/suite.h"
#include "support/until.h"
#include "unit/server/running.h"

#define CLIENTS 24

static struct listener_conf listener;
static struct server_conf confs[2]; /* the first is used first */

static void setup(void)
{
    running_enter();
    listener = running_listener("echo", 0, NULL);
    for (unsigned i = 0; i < 2; i++) {
        confs[i] = (struct server_conf){SMALL_LOOPS(2), SMALL_EXECUTORS(1), .listeners = &listener,
                                        .n_listeners = 1};
        confs[i].boss.threads = 0;
    }
}

static void start(void)
{
    running_start(&confs[0]);
}

static int resize(unsigned workers)
{
    return running_resize(&confs[0], workers);
}

static unsigned workers(void)
{
    return loop_group_in_use(server_admin_workers(running.server).loops);
}

static unsigned listen_sockets(void)
{
    return listeners_sockets(server_parts(running.server).listeners);
}

GROUP(server_loops, setup, running_leave);

TEST(server_loops, each_added_worker_gets_a_listen_socket)
{
    start();
    ck_assert_uint_eq(listen_sockets(), 2);
    ck_assert_int_eq(resize(5), 0);
    ck_assert_uint_eq(workers(), 5);
    ck_assert_uint_eq(listen_sockets(), 5);
    EXPECT_LOG_LINES("workers: 2 -> 5 threads, by an administrator", 1);
    running_come(CLIENTS);
    running_go();
}

/* Two share the port, which one alone does not. */
TEST(server_loops, a_single_socket_gets_others_beside_it)
{
    confs[0].worker.threads.n = 1;
    start();
    ck_assert_int_eq(resize(2), 0);
    ck_assert_uint_eq(listen_sockets(), 2);
    running_come(CLIENTS);
    running_go();
}

/* Closed sockets would reset the clients that wait in them. */
TEST(server_loops, sockets_of_parked_workers_are_served_by_others)
{
    start();
    ck_assert_int_eq(resize(4), 0);
    ck_assert_int_eq(resize(1), 0);
    ck_assert_uint_eq(workers(), 1);
    ck_assert_uint_eq(listen_sockets(), 4);
    running_come(CLIENTS);
    UNTIL(loop_load(loop_group_at(server_admin_workers(running.server).loops, 0)) == CLIENTS);
    ck_assert_int_eq(resize(4), 0);
    ck_assert_uint_eq(listen_sockets(), 4);
    running_go();
}

static void expect_nothing_has_changed(unsigned descriptors)
{
    ck_assert_uint_eq(process_descriptors(), descriptors);
    ck_assert_uint_eq(workers(), 2);
    ck_assert_uint_eq(listen_sockets(), 2);
    ck_assert_uint_eq(server_admin_scale(running.server).set, 0);
    running_come(4);
    running_go();
}

/* Each of 3 loops has 3, then each its listen socket. */
TEST_EACH(server_loops, lack_of_descriptors_changes_nothing, 12)
{
    unsigned descriptors;

    start();
    running_come(4);
    running_go();
    descriptors = process_descriptors();
    process_allow_descriptors((unsigned)_i);
    ck_assert_int_eq(resize(5), -EMFILE);
    process_allow_any_descriptors();
    expect_nothing_has_changed(descriptors);
    EXPECT_LOG_LINES("workers: cannot change to 5 threads: Too many open files", 1);
}

static int resize_to_5(void *cookie)
{
    (void)cookie;
    return resize(5);
}

TEST(server_loops, failed_allocation_changes_nothing)
{
    start();
    ck_assert_uint_gt(fault_each_allocation(resize_to_5, NULL), 12);
    ck_assert_uint_eq(workers(), 5);
    ck_assert_uint_eq(listen_sockets(), 5);
    running_come(CLIENTS);
    running_go();
}

TEST(server_loops, a_failed_change_can_be_made_later)
{
    start();
    process_allow_descriptors(10);
    ck_assert_int_eq(resize(5), -EMFILE);
    process_allow_any_descriptors();
    ck_assert_int_eq(resize(5), 0);
    ck_assert_uint_eq(listen_sockets(), 5);
    running_come(CLIENTS);
    running_go();
}

TEST(server_loops, the_number_stays_until_a_reload_has_another_one)
{
    struct server_workers_conf configured;

    start();
    ck_assert_int_eq(resize(5), 0);
    ck_assert_int_eq(running_reload(&confs[1]), 0);
    ck_assert_uint_eq(workers(), 5);
    ck_assert_uint_eq(listen_sockets(), 5);
    ck_assert_uint_eq(server_admin_threads(running.server, &configured), 5);
    ck_assert_uint_eq(configured.n, 2);
    confs[0].worker.threads.n = 3;
    ck_assert_int_eq(running_reload(&confs[0]), 0);
    ck_assert_uint_eq(workers(), 3);
    ck_assert_uint_eq(server_admin_threads(running.server, &configured), 0);
}

TEST(server_loops, zero_is_the_configured_number)
{
    start();
    ck_assert_int_eq(resize(5), 0);
    ck_assert_int_eq(resize(0), 0);
    ck_assert_uint_eq(workers(), 2);
    ck_assert_uint_eq(server_admin_scale(running.server).set, 0);
}

TEST(server_loops, a_number_may_be_set_before_the_start)
{
    running_create(&confs[0]);
    ck_assert_int_eq(server_admin_start_threads(running.server, 4), 0);
    ck_assert_int_eq(server_start(running.server), 0);
    ck_assert_uint_eq(workers(), 4);
    ck_assert_uint_eq(listen_sockets(), 4);
    ck_assert_uint_eq(server_admin_scale(running.server).set, 4);
    running_come(CLIENTS);
    ck_assert_int_eq(resize(1), 0);
    EXPECT_LOG_LINES("workers: 4 -> 1 threads: sessions moved: ", 1);
    running_go();
}

/* ---- threads = auto ---- */

static void be_auto(unsigned min, unsigned max)
{
    confs[0].worker.threads = (struct server_workers_conf){.min = min, .max = max};
}

TEST(server_loops, a_number_within_the_limits_stays_when_only_the_limits_change)
{
    start();
    be_auto(1, 8);
    ck_assert_int_eq(running_reload(&confs[0]), 0);
    ck_assert_uint_eq(workers(), 2);
    confs[1].worker.threads = (struct server_workers_conf){.min = 3, .max = 8};
    ck_assert_int_eq(running_reload(&confs[1]), 0);
    ck_assert_uint_eq(workers(), 3);
    ck_assert_uint_eq(server_admin_scale(running.server).max, 8);
}

TEST(server_loops, an_administrators_number_holds_against_the_load)
{
    be_auto(1, 8);
    start();
    ck_assert_uint_eq(server_admin_scale(running.server).max, 8);
    ck_assert_int_eq(resize(3), 0);
    ck_assert_uint_eq(server_admin_scale(running.server).max, 0);
    ck_assert_int_eq(resize(0), 0);
    ck_assert_uint_eq(server_admin_scale(running.server).max, 8);
}

/* Until the number is the lowest; then it sleeps. */
TEST(server_loops, the_main_thread_watches_until_no_worker_can_go)
{
    be_auto(2, 2);
    start();
    UNTIL(server_watch(running.server) && server_doze(running.server));
    confs[1].worker.threads = (struct server_workers_conf){.min = 1, .max = 2};
    ck_assert_int_eq(running_reload(&confs[1]), 0);
    ck_assert(server_watch(running.server));
    PAUSE_MS(50);
    ck_assert(server_watch(running.server));
    ck_assert(!server_doze(running.server));
    ck_assert_int_eq(resize(1), 0);
    UNTIL(server_watch(running.server) && server_doze(running.server));
}
