/* net/acceptor: how many calls it takes to accept; see note: likely in acceptor.c. */
#include <fcntl.h>
#include <unistd.h>

#include "net/acceptor.h"
#include "support/fault.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

#define BATCH   16
#define CLIENTS 128

static struct loop *loop;
static struct acceptor *acceptor;
static struct address a;

/* When clients arrived, written on the loop; the number is written last. */
static uint64_t turns[CLIENTS];
static atomic_uint arrived;

static void on_accepted(void *cookie, int fd, const struct address *peer)
{
    unsigned n = atomic_load(&arrived);
    struct loop_stats stats;

    (void)cookie;
    (void)peer;
    ck_assert_uint_lt(n, CLIENTS);
    loop_stats(loop, &stats);
    turns[n] = stats.turns;
    close(fd);
    atomic_store(&arrived, n + 1);
}

static void start(void *arg)
{
    (void)arg;
    acceptor_start(acceptor, loop);
}

static void stop(void *arg)
{
    (void)arg;
    acceptor_stop(acceptor);
}

static void setup(void)
{
    static const struct acceptor_ops ops = {.accepted = on_accepted};
    int fd = sockets_listen(&a, CLIENTS);

    ck_assert_int_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    ck_assert_int_eq(acceptor_create(&acceptor, BATCH, fd, &ops, NULL), 0);
    loop = loop_runner_create();
    loop_runner_call(loop, start, NULL);
}

static void teardown(void)
{
    loop_runner_call(loop, stop, NULL);
    loop_runner_destroy(loop);
    acceptor_destroy(acceptor);
}

GROUP(acceptor_queue, setup, teardown);

TEST(acceptor_queue, clients_that_come_one_by_one_cost_one_call_each)
{
    int clients[40];

    for (unsigned i = 0; i < ARRAY_LEN(clients); i++) {
        clients[i] = sockets_connect(&a);
        UNTIL(atomic_load(&arrived) == i + 1);
    }
    ck_assert_uint_ge(fault_calls(FAULT_ACCEPT4), ARRAY_LEN(clients) + 1); /* the first look */
    ck_assert_uint_le(fault_calls(FAULT_ACCEPT4), ARRAY_LEN(clients) + ARRAY_LEN(clients) / 4);
    for (unsigned i = 0; i < ARRAY_LEN(clients); i++)
        close(clients[i]);
}

static void connect_all(void *arg)
{
    int *clients = arg;

    for (unsigned i = 0; i < 4 * BATCH; i++)
        clients[i] = sockets_connect(&a);
}

TEST(acceptor_queue, acceptor_finds_out_that_the_queue_has_become_long)
{
    int first, clients[4 * BATCH];

    first = sockets_connect(&a);
    UNTIL(atomic_load(&arrived) == 1); /* one is likely now */
    loop_runner_call(loop, connect_all, clients);
    UNTIL(atomic_load(&arrived) == 1 + ARRAY_LEN(clients));
    ck_assert_uint_le(turns[ARRAY_LEN(clients)] - turns[1], 2 * BATCH); /* 16 times 1, then BATCH */
    close(first);
    for (unsigned i = 0; i < ARRAY_LEN(clients); i++)
        close(clients[i]);
}
