/* listen/listeners: a change that is refused or cancelled leaves all as it was. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/queued.h"
#include "support/served.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

static bool exists(unsigned i)
{
    struct stat st;

    return lstat(served.addresses[i].u.un.sun_path, &st) == 0;
}

GROUP(listeners_change, served_enter, served_leave);

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
    queued_expect_unchanged(descriptors);
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
    queued_expect_unchanged(descriptors);
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
    queued_expect_unchanged(descriptors);
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
    queued_expect_unchanged(descriptors);
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
    queued_expect_unchanged(descriptors);
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
    queued_expect_unchanged(descriptors);
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
    queued_expect_unchanged(descriptors);
    served_change(2);
    close(served_client(1));
    served_change(1);
    UNTIL(atomic_load(&served.stopped) == 1);
    ck_assert(!exists(1));
    close(served_client(0));
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
