/*
 * server/resize: more and fewer boss and worker threads while clients are served; whatever fails,
 * nothing has changed.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/loop.h"
#include "engine/loop_group.h"
#include "server/resize.h"
#include "server/server_admin.h"
#include "server/server_figures.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/process.h"
#include "support/server_confs.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "unit/server/running.h"

#define SPARES 4

static struct listener_conf listeners[2];
static struct upstream_server_conf upstream_server;
static struct upstream_conf upstream = {.name = "back",
                                        .servers = &upstream_server,
                                        .n_servers = 1,
                                        .connect_timeout_ns = 5 * NS_PER_S,
                                        .spare = {.keep = SPARES, .max_age_ns = 3600 * NS_PER_S}};
static struct server_conf conf;

static void setup(void)
{
    running_enter();
    upstream_server = running_upstream_server("a", 0);
    listeners[0] = running_listener("echo", 0, NULL);
    listeners[1] = running_listener("front", 1, "back");
    conf = (struct server_conf){SMALL_LOOPS(2),   SMALL_EXECUTORS(1),     .listeners = listeners,
                                .n_listeners = 1, .upstreams = &upstream, .n_upstreams = 1};
}

static void start(void)
{
    running_start(&conf);
}

static void resize(unsigned boss, unsigned workers)
{
    struct resize change;

    ck_assert_int_eq(server_prepare_threads(running.server, boss, workers, &change), 0);
    resize_commit(&change);
}

/* Threads of loops, when ${n} more clients have been served. */
static unsigned loops_after(unsigned n)
{
    running_come(n);
    return process_loops();
}

GROUP(resize, setup, running_leave);

TEST(resize, added_workers_get_clients)
{
    start();
    ck_assert_uint_eq(loops_after(4), 2 + 2); /* with the boss */
    resize(1, 5);
    ck_assert_uint_eq(loops_after(5), 2 + 5);
    running_exchange_all();
    running_go();
}

static void expect_connections(unsigned worker, unsigned n)
{
    const struct session_scan_workers workers = server_admin_workers(running.server);

    UNTIL(loop_load(loop_group_at(workers.loops, worker)) == n);
}

TEST(resize, a_parked_worker_hands_over_its_clients)
{
    start();
    resize(1, 3);
    running_come(9);
    resize(1, 1);
    EXPECT_LOG_LINES("workers: 3 -> 1 threads: sessions moved: 6, not yet: 0", 1);
    expect_connections(0, 9);
    running_exchange_all();
    running_go();
}

TEST(resize, added_workers_get_their_share)
{
    start();
    running_come(12);
    resize(1, 4);
    EXPECT_LOG_LINES("workers: 2 -> 4 threads: sessions moved: 6, not yet: 0", 1);
    for (unsigned i = 0; i < 4; i++)
        expect_connections(i, 3);
    running_exchange_all();
    running_go();
}

/* Of the clients of two workers that stay none has to move. */
TEST(resize, workers_that_stay_keep_their_clients)
{
    start();
    resize(1, 3);
    running_come(3);
    resize(1, 2);
    EXPECT_LOG_LINES("workers: 3 -> 2 threads: sessions moved: 1, not yet: 0", 1);
    resize(1, 2);
    running_exchange_all();
    EXPECT_LOG_LINES("threads: sessions moved", 1);
    running_go();
}

TEST(resize, a_parked_worker_gets_no_new_clients)
{
    start();
    resize(1, 3);
    running_come(2);
    resize(1, 1);
    ck_assert_uint_eq(loops_after(6), 2 + 2); /* the third has not been started */
    expect_connections(0, 8);
    running_exchange_all();
    resize(1, 3);
    ck_assert_uint_eq(loops_after(3), 2 + 3);
    running_go();
}

TEST(resize, sessions_of_new_workers_drain_and_are_stopped)
{
    unsigned cut;

    start();
    resize(1, 4);
    running_come(4);
    resize(1, 1);
    ck_assert_int_eq(server_stop(running.server, &cut), 0);
    ck_assert_uint_eq(cut, 4);
    running_go();
}

TEST(resize, new_loops_are_in_the_statistics)
{
    start();
    resize(2, 3);
    running_come(3);
    server_figures_log(running.server);
    ck_assert_uint_ge(log_lines_with("boss-1-2"), 1);
    ck_assert_uint_ge(log_lines_with("work-2-3"), 1);
    ck_assert(server_watch(running.server));
    running_go();
}

/* ---- spare connections ---- */

static int spares[64];
static unsigned n_spares;

/* Those that come, until there are ${n} in all. */
static void accept_spares(unsigned n)
{
    while (n_spares < n)
        spares[n_spares++] = sockets_accept(running.listening[0]);
    PAUSE_MS(30);
    ck_assert_int_eq(poll(&(struct pollfd){.fd = running.listening[0], .events = POLLIN}, 1, 0), 0);
}

/* Of those accepted. */
static unsigned spares_open(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < n_spares; i++)
        n += poll(&(struct pollfd){.fd = spares[i], .events = POLLIN}, 1, 0) == 0;
    return n;
}

static void close_spares(void)
{
    while (n_spares > 0)
        close(spares[--n_spares]);
}

TEST(resize, each_worker_in_use_keeps_its_share_of_spares)
{
    conf.n_listeners = 2;
    start();
    accept_spares(SPARES);
    resize(1, 4); /* one each, so that two of each old worker's are closed */
    accept_spares(SPARES + 2);
    UNTIL(spares_open() == SPARES);
    resize(1, 8); /* at least one each */
    accept_spares(SPARES + 2 + 4);
    UNTIL(spares_open() == 8);
    resize(1, 1);
    accept_spares(SPARES + 2 + 4 + 3);
    UNTIL(spares_open() == SPARES);
    resize(1, 2);
    accept_spares(SPARES + 2 + 4 + 3 + 2);
    UNTIL(spares_open() == SPARES);
    close_spares();
}

TEST(resize, sessions_of_a_new_worker_use_its_spares)
{
    conf.n_listeners = 2;
    conf.worker.threads.n = 1;
    start();
    accept_spares(SPARES);
    resize(1, 2);
    accept_spares(SPARES + 2);
    for (unsigned i = 0; i < 2; i++) {
        int client = sockets_connect(&running.addresses[1]);
        bool found = false;

        sockets_say(client, "question");
        while (!found)
            for (unsigned s = 0; s < n_spares; s++) {
                char text[8];

                found |= recv(spares[s], text, sizeof(text), MSG_DONTWAIT) == sizeof(text);
            }
        close(client);
    }
    close_spares();
}

/* ---- when it fails ---- */

TEST(resize, a_cancelled_change_leaves_no_trace)
{
    struct resize change;
    unsigned open;

    conf.n_listeners = 2;
    start();
    accept_spares(SPARES);
    open = process_descriptors();
    for (unsigned n = 1; n < 20; n++) {
        ck_assert_int_eq(server_prepare_threads(running.server, n, 21 - n, &change), 0);
        resize_cancel(&change);
    }
    ck_assert_uint_eq(process_descriptors(), open);
    accept_spares(SPARES);
    ck_assert_uint_eq(loops_after(4), 2 + 2);
    resize(1, 3);
    ck_assert_uint_eq(loops_after(3), 2 + 3);
    running_go();
    close_spares();
}

static int prepare(void *cookie)
{
    return server_prepare_threads(running.server, 3, 5, cookie);
}

TEST(resize, failed_allocation_changes_nothing)
{
    struct resize change;
    unsigned open;

    conf.n_listeners = 2;
    start();
    accept_spares(SPARES);
    open = process_descriptors();
    /* Five loops; of each of three workers at least itself, its net and its pool; spare parts. */
    ck_assert_uint_ge(fault_each_allocation(prepare, &change), 5 + 3 * 3 + 1);
    resize_cancel(&change);
    ck_assert_uint_eq(process_descriptors(), open);
    accept_spares(SPARES);
    ck_assert_uint_eq(loops_after(4), 2 + 2);
    running_go();
    close_spares();
}

TEST_EACH(resize, lack_of_descriptors_changes_nothing, 9)
{
    struct resize change;
    unsigned open;

    conf.n_listeners = 2;
    start();
    accept_spares(SPARES);
    open = process_descriptors();
    process_allow_descriptors((unsigned)_i);
    ck_assert_int_eq(server_prepare_threads(running.server, 3, 5, &change), -EMFILE);
    process_allow_any_descriptors();
    ck_assert_uint_eq(process_descriptors(), open);
    ck_assert_uint_eq(loops_after(4), 2 + 2);
    running_go();
    close_spares();
}

/* ---- under load ---- */

static atomic_bool storm_over;
static atomic_uint served;

static void *storm(void *arg)
{
    while (!atomic_load(&storm_over)) {
        int fd = sockets_connect(&running.addresses[0]);

        running_exchange(fd);
        close(fd);
        atomic_fetch_add(&served, 1);
    }
    return arg;
}

TEST_EACH(resize, clients_are_served_while_the_numbers_change, 4)
{
    static const enum chooser_kind kinds[] = {CHOOSER_ROUND_ROBIN, CHOOSER_LEAST_CONNECTIONS,
                                              CHOOSER_SHUFFLED, CHOOSER_P2C};
    pthread_t threads[3];

    conf.worker.chooser = kinds[_i];
    conf.n_listeners = 2;
    start();
    running_come(8);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, storm, NULL);
    for (unsigned i = 0; i < 60; i++) {
        struct resize change;

        ck_assert_int_eq(
            server_prepare_threads(running.server, 1 + i % 3, 1 + i * 7 % (i / 4 + 2), &change), 0);
        if (i % 5 == 4)
            resize_cancel(&change);
        else
            resize_commit(&change);
        (void)server_watch(running.server);
        PAUSE_MS(2);
    }
    UNTIL(atomic_load(&served) > 100);
    atomic_store(&storm_over, true);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    running_exchange_all();
    running_go();
}
