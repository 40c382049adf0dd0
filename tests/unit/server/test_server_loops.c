/*
 * server/server_loops: an administrator's number of workers, where these accept: their listen
 * sockets come and move with them; what fails changes nothing; what ends the number.
 */
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/loop.h"
#include "engine/loop_group.h"
#include "listen/listeners.h"
#include "server/server.h"
#include "server/server_admin.h"
#include "server/server_conf.h"
#include "server/server_parts.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/process.h"
#include "support/server_confs.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

#define CLIENTS 24

static struct server *server;
static struct address address;
static struct listener_conf listener = {.name = "echo",
                                        .addresses = &address,
                                        .n_addresses = 1,
                                        .service = LISTENER_ECHO,
                                        .backlog = 128,
                                        .reuseport = 1};
static struct server_conf confs[2]; /* the first is used first */
static int holder, done_fd, done_rc;
static unsigned before;
static int clients[CLIENTS];

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_NOTICE);
    before = process_descriptors();
    done_fd = eventfd(0, EFD_CLOEXEC);
    holder = sockets_bound(&address);
    for (unsigned i = 0; i < 2; i++) {
        confs[i] = (struct server_conf){SMALL_LOOPS(2), SMALL_EXECUTORS(1), .listeners = &listener,
                                        .n_listeners = 1};
        confs[i].boss.threads = 0;
    }
}

static void create(void)
{
    struct server_events events = {.drained = NULL};

    ck_assert_int_eq(server_create(&server, &confs[0], &events), 0);
}

static void start(void)
{
    create();
    ck_assert_int_eq(server_start(server), 0);
}

static void teardown(void)
{
    unsigned cut;

    ck_assert_int_eq(server_stop(server, &cut), 0);
    server_destroy(server);
    close(done_fd);
    close(holder);
    UNTIL(process_loops() == 0);
    ck_assert_uint_eq(process_descriptors(), before);
}

static void done(void *cookie, int rc)
{
    (void)cookie;
    done_rc = rc;
    (void)eventfd_write(done_fd, 1);
}

/* The result of a change that has begun with ${rc}. No ck_assert(): it allocates memory. */
static int await(int rc)
{
    eventfd_t n;

    if (rc < 0)
        return rc;
    return eventfd_read(done_fd, &n) == 0 ? done_rc : -errno;
}

static int resize(unsigned workers)
{
    const struct server_reload to = {.conf = &confs[0], .workers = workers, .done = done};

    return await(server_resize(server, &to));
}

static int reload(const struct server_conf *conf)
{
    const struct server_reload to = {.conf = conf, .done = done};

    return await(server_reload(server, &to));
}

static unsigned workers(void)
{
    return loop_group_in_use(server_admin_workers(server).loops);
}

static unsigned listen_sockets(void)
{
    return listeners_sockets(server_parts(server).listeners);
}

/* ${n} clients, of which each is served. */
static void visit(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        clients[i] = sockets_connect(&address);
        sockets_say(clients[i], "hello");
        sockets_hear(clients[i], "hello");
    }
}

static void leave(unsigned n)
{
    while (n > 0)
        close(clients[--n]);
    UNTIL(server_sessions(server) == 0);
}

GROUP(server_loops, setup, teardown);

TEST(server_loops, each_added_worker_gets_a_listen_socket)
{
    start();
    ck_assert_uint_eq(listen_sockets(), 2);
    ck_assert_int_eq(resize(5), 0);
    ck_assert_uint_eq(workers(), 5);
    ck_assert_uint_eq(listen_sockets(), 5);
    EXPECT_LOG_LINES("workers: 2 -> 5 threads, by an administrator", 1);
    visit(CLIENTS);
    leave(CLIENTS);
}

/* Two share the port, which one alone does not. */
TEST(server_loops, a_single_socket_gets_others_beside_it)
{
    confs[0].worker.threads.n = 1;
    start();
    ck_assert_int_eq(resize(2), 0);
    ck_assert_uint_eq(listen_sockets(), 2);
    visit(CLIENTS);
    leave(CLIENTS);
}

/* Closed sockets would reset the clients that wait in them. */
TEST(server_loops, sockets_of_parked_workers_are_served_by_others)
{
    start();
    ck_assert_int_eq(resize(4), 0);
    ck_assert_int_eq(resize(1), 0);
    ck_assert_uint_eq(workers(), 1);
    ck_assert_uint_eq(listen_sockets(), 4);
    visit(CLIENTS);
    UNTIL(loop_load(loop_group_at(server_admin_workers(server).loops, 0)) == CLIENTS);
    ck_assert_int_eq(resize(4), 0);
    ck_assert_uint_eq(listen_sockets(), 4);
    leave(CLIENTS);
}

static void expect_nothing_has_changed(unsigned descriptors)
{
    ck_assert_uint_eq(process_descriptors(), descriptors);
    ck_assert_uint_eq(workers(), 2);
    ck_assert_uint_eq(listen_sockets(), 2);
    ck_assert_uint_eq(server_admin_scale(server).set, 0);
    visit(4);
    leave(4);
}

/* Each of 3 loops has 3, then each its listen socket. */
TEST_EACH(server_loops, lack_of_descriptors_changes_nothing, 12)
{
    unsigned descriptors;

    start();
    visit(4);
    leave(4);
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
    visit(CLIENTS);
    leave(CLIENTS);
}

TEST(server_loops, a_failed_change_can_be_made_later)
{
    start();
    process_allow_descriptors(10);
    ck_assert_int_eq(resize(5), -EMFILE);
    process_allow_any_descriptors();
    ck_assert_int_eq(resize(5), 0);
    ck_assert_uint_eq(listen_sockets(), 5);
    visit(CLIENTS);
    leave(CLIENTS);
}

TEST(server_loops, the_number_stays_until_a_reload_has_another_one)
{
    struct server_workers_conf configured;

    start();
    ck_assert_int_eq(resize(5), 0);
    ck_assert_int_eq(reload(&confs[1]), 0);
    ck_assert_uint_eq(workers(), 5);
    ck_assert_uint_eq(listen_sockets(), 5);
    ck_assert_uint_eq(server_admin_threads(server, &configured), 5);
    ck_assert_uint_eq(configured.n, 2);
    confs[0].worker.threads.n = 3;
    ck_assert_int_eq(reload(&confs[0]), 0);
    ck_assert_uint_eq(workers(), 3);
    ck_assert_uint_eq(server_admin_threads(server, &configured), 0);
}

TEST(server_loops, zero_is_the_configured_number)
{
    start();
    ck_assert_int_eq(resize(5), 0);
    ck_assert_int_eq(resize(0), 0);
    ck_assert_uint_eq(workers(), 2);
    ck_assert_uint_eq(server_admin_scale(server).set, 0);
}

TEST(server_loops, a_number_may_be_set_before_the_start)
{
    create();
    ck_assert_int_eq(server_admin_start_threads(server, 4), 0);
    ck_assert_int_eq(server_start(server), 0);
    ck_assert_uint_eq(workers(), 4);
    ck_assert_uint_eq(listen_sockets(), 4);
    ck_assert_uint_eq(server_admin_scale(server).set, 4);
    visit(CLIENTS);
    ck_assert_int_eq(resize(1), 0);
    EXPECT_LOG_LINES("workers: 4 -> 1 threads: sessions moved: ", 1);
    leave(CLIENTS);
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
    ck_assert_int_eq(reload(&confs[0]), 0);
    ck_assert_uint_eq(workers(), 2);
    confs[1].worker.threads = (struct server_workers_conf){.min = 3, .max = 8};
    ck_assert_int_eq(reload(&confs[1]), 0);
    ck_assert_uint_eq(workers(), 3);
    ck_assert_uint_eq(server_admin_scale(server).max, 8);
}

TEST(server_loops, an_administrators_number_holds_against_the_load)
{
    be_auto(1, 8);
    start();
    ck_assert_uint_eq(server_admin_scale(server).max, 8);
    ck_assert_int_eq(resize(3), 0);
    ck_assert_uint_eq(server_admin_scale(server).max, 0);
    ck_assert_int_eq(resize(0), 0);
    ck_assert_uint_eq(server_admin_scale(server).max, 8);
}

/* Until the number is the lowest; then it sleeps. */
TEST(server_loops, the_main_thread_watches_until_no_worker_can_go)
{
    be_auto(2, 2);
    start();
    UNTIL(server_watch(server) && server_doze(server));
    confs[1].worker.threads = (struct server_workers_conf){.min = 1, .max = 2};
    ck_assert_int_eq(reload(&confs[1]), 0);
    ck_assert(server_watch(server));
    PAUSE_MS(50);
    ck_assert(server_watch(server));
    ck_assert(!server_doze(server));
    ck_assert_int_eq(resize(1), 0);
    UNTIL(server_watch(server) && server_doze(server));
}
