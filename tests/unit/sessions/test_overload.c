/*
 * sessions/overload: what is done when the allocator says that too much memory is in use; here it
 * says what a test likes.
 */
#include <errno.h>
#include <malloc.h>
#include <openssl/crypto.h>
#include <poll.h>
#include <unistd.h>

#include "server/server.h"
#include "server/server_conf.h"
#include "support/log_lines.h"
#include "support/process.h"
#include "support/server_confs.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "tls/tls_memory.h"

#define MB      INT64_C(1000000)
#define CLIENTS 60
#define ACTIVE  45 /* from this one on */

static struct server *server;
static struct address address;
static struct listener_conf listener;
static struct server_conf conf;
static int holder; /* of the address's port */
static unsigned before;
static int clients[CLIENTS];

/* In use, without clients and for each of them. */
static _Atomic int64_t idle_bytes, client_bytes;
static _Atomic(struct server *) counted; /* whose clients */

struct mallinfo2 mallinfo2(void)
{
    struct server *s = atomic_load(&counted);
    int64_t sessions = s ? (int64_t)server_sessions(s) : 0;
    int64_t bytes = atomic_load(&idle_bytes) + sessions * atomic_load(&client_bytes);

    return (struct mallinfo2){.uordblks = (size_t)(bytes / 2),
                              .hblkhd = (size_t)(bytes - bytes / 2)};
}

static void on_drained(void *cookie)
{
    (void)cookie;
}

/*
 * With 10 MB in use an episode begins above 10 + 54 * 3/4 = 50.5 MB and ends at 10 + 54 * 5/8 =
 * 43.75 MB.
 */
static void setup(void)
{
    log_lines_capture(LOG_LEVEL_INFO);
    holder = sockets_bound(&address);
    listener = (struct listener_conf){.name = "echo",
                                      .addresses = &address,
                                      .n_addresses = 1,
                                      .service = LISTENER_ECHO,
                                      .backlog = 128,
                                      .reuseport = 1};
    conf = (struct server_conf){
        SMALL_LOOPS(3), SMALL_EXECUTORS(1), .listeners = &listener, .n_listeners = 1,
        .overload = {.max_memory_bytes = 64 * MB,
                     .shedding = {.tokens = 1000, .burst = 1000, .period_ns = NS_PER_S}}};
    atomic_store(&idle_bytes, 10 * MB);
    atomic_store(&client_bytes, 0);
    before = process_descriptors();
}

static int start(void)
{
    struct server_events events = {.drained = on_drained};

    ck_assert_int_eq(server_create(&server, &conf, &events), 0);
    atomic_store(&counted, server);
    return server_start(server);
}

static void teardown(void)
{
    unsigned cut;

    ck_assert_int_eq(server_stop(server, &cut), 0);
    atomic_store(&counted, NULL);
    server_destroy(server);
    UNTIL(process_loops() == 0);
    ck_assert_uint_eq(process_descriptors(), before);
    close(holder);
}

static void exchange(int fd)
{
    sockets_say(fd, "hello");
    sockets_hear(fd, "hello");
}

static void come(void)
{
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = sockets_connect(&address);
        exchange(clients[i]);
    }
}

static void go(void)
{
    for (int i = 0; i < CLIENTS; i++)
        close(clients[i]);
    UNTIL(server_sessions(server) == 0);
}

static bool was_closed(int fd)
{
    struct pollfd p = {.fd = fd};

    return poll(&p, 1, 0) > 0;
}

static unsigned closed_of(int from, int to)
{
    unsigned n = 0;

    for (int i = from; i < to; i++)
        n += was_closed(clients[i]);
    return n;
}

GROUP(memory, setup, teardown);

TEST(memory, the_idlest_clients_are_closed_until_memory_is_below_the_limit)
{
    ck_assert_int_eq(start(), 0);
    come();
    PAUSE_MS(5);
    for (int i = ACTIVE; i < CLIENTS; i++)
        exchange(clients[i]);
    atomic_store(&client_bytes, 1 * MB); /* 70 MB in all: 27 have to go */
    UNTIL(log_lines_with("overload is over") == 1);
    EXPECT_LOG_LINES("the threshold of max_memory is", 1);
    ck_assert_uint_eq(closed_of(ACTIVE, CLIENTS), 0);
    ck_assert_uint_ge(closed_of(0, ACTIVE), 27);
    for (int i = ACTIVE; i < CLIENTS; i++)
        exchange(clients[i]);
    atomic_store(&client_bytes, 0);
    go();
}

/* Clients went to the workers in turn. Two of them keep five clients, the third all of its 20. */
TEST(memory, each_worker_closes_its_share_of_all_clients)
{
    unsigned closed_of_few = 0;

    ck_assert_int_eq(start(), 0);
    come();
    for (int i = 15; i < CLIENTS; i++)
        if (i % 3 != 0)
            close(clients[i]);
    UNTIL(server_sessions(server) == 30);
    atomic_store(&client_bytes, 2 * MB); /* 70 MB in all: 14 have to go, 9 of them from the 20 */
    UNTIL(log_lines_with("overload is over") == 1);
    for (int i = 0; i < 15; i++)
        closed_of_few += i % 3 != 0 && was_closed(clients[i]);
    ck_assert_uint_le(closed_of_few, 7);
    atomic_store(&client_bytes, 0);
    for (int i = 0; i < CLIENTS; i++)
        if (i % 3 == 0 || i < 15)
            close(clients[i]);
    UNTIL(server_sessions(server) == 0);
}

TEST(memory, memory_below_the_limit_closes_no_client)
{
    ck_assert_int_eq(start(), 0);
    come();
    atomic_store(&idle_bytes, 50 * MB);
    PAUSE_MS(250); /* it looks every 100 ms */
    ck_assert_uint_eq(log_lines_with("overload"), 0);
    ck_assert_uint_eq(closed_of(0, CLIENTS), 0);
    go();
}

TEST(memory, without_shedding_new_clients_wait_and_no_client_is_closed)
{
    int late;

    conf.overload.shedding.tokens = 0;
    ck_assert_int_eq(start(), 0);
    come();
    atomic_store(&idle_bytes, 51 * MB);
    UNTIL(log_lines_with("no client is accepted") == 1);
    late = sockets_connect(&address);
    sockets_say(late, "hello");
    PAUSE_MS(100);
    sockets_hear_nothing(late);
    atomic_store(&idle_bytes, 44 * MB); /* not low enough yet */
    PAUSE_MS(250);
    sockets_hear_nothing(late);
    atomic_store(&idle_bytes, 43 * MB);
    sockets_hear(late, "hello");
    EXPECT_LOG_LINES("overload is over", 1);
    ck_assert_uint_eq(closed_of(0, CLIENTS), 0);
    close(late);
    go();
}

TEST(memory, each_episode_is_logged_once)
{
    conf.overload.shedding.tokens = 0;
    ck_assert_int_eq(start(), 0);
    for (unsigned i = 1; i <= 3; i++) {
        atomic_store(&idle_bytes, 60 * MB);
        UNTIL(log_lines_with("no client is accepted") == i);
        PAUSE_MS(120);
        atomic_store(&idle_bytes, 10 * MB);
        UNTIL(log_lines_with("overload is over") == i);
    }
    EXPECT_LOG_LINES("no client is accepted", 3);
}

static unsigned grow(size_t bytes)
{
    void *block = OPENSSL_malloc(bytes);

    ck_assert_ptr_nonnull(block);
    OPENSSL_free(block);
    return log_lines_with("no client is accepted");
}

/* The allocator of this test does not know of it, so it is only growth since the last sample. */
TEST(memory, growth_of_the_tls_library_counts_between_two_samples)
{
    ck_assert_int_eq(tls_memory_count(), 0);
    conf.overload.shedding.tokens = 0;
    ck_assert_int_eq(start(), 0);
    PAUSE_MS(250);
    ck_assert_uint_eq(grow(40 * MB), 0);
    for (unsigned i = 1; i <= 2; i++) {
        UNTIL(grow(41 * MB) >= i); /* at the first sample at the latest */
        UNTIL(log_lines_with("overload is over") == i);
    }
    EXPECT_LOG_LINES("no client is accepted", 2);
}

TEST(memory, limit_that_is_half_used_at_the_start_is_an_error)
{
    atomic_store(&idle_bytes, 33 * MB);
    ck_assert_int_eq(start(), -ERANGE);
    ck_assert_uint_eq(
        log_lines_with("33000000 of 64000000 bytes are in use before the first client"), 1);
}
