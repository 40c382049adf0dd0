/* net/acceptor: how many calls it takes to accept; see note: likely in acceptor.c. */
#include <unistd.h>

#include "support/accepts.h"
#include "support/fault.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

static void setup(void)
{
    accepts_enter();
    accepts_start();
}

GROUP(acceptor_queue, setup, accepts_leave);

TEST(acceptor_queue, clients_that_come_one_by_one_cost_one_call_each)
{
    int clients[40];

    for (unsigned i = 0; i < ARRAY_LEN(clients); i++) {
        clients[i] = sockets_connect(&accepts.address);
        UNTIL(atomic_load(&accepts.arrived) == i + 1);
    }
    ck_assert_uint_ge(fault_calls(FAULT_ACCEPT4), ARRAY_LEN(clients) + 1); /* the first look */
    ck_assert_uint_le(fault_calls(FAULT_ACCEPT4), ARRAY_LEN(clients) + ARRAY_LEN(clients) / 4);
    for (unsigned i = 0; i < ARRAY_LEN(clients); i++)
        close(clients[i]);
}

static void connect_all(void *arg)
{
    int *clients = arg;

    for (unsigned i = 0; i < 4 * ACCEPTS_BATCH; i++)
        clients[i] = sockets_connect(&accepts.address);
}

TEST(acceptor_queue, acceptor_finds_out_that_the_queue_has_become_long)
{
    int first, clients[4 * ACCEPTS_BATCH];

    first = sockets_connect(&accepts.address);
    UNTIL(atomic_load(&accepts.arrived) == 1); /* one is likely now */
    loop_runner_call(accepts.loop, connect_all, clients);
    UNTIL(atomic_load(&accepts.arrived) == 1 + ARRAY_LEN(clients));
    ck_assert_uint_le(accepts.turns[ARRAY_LEN(clients)] - accepts.turns[1],
                      2 * ACCEPTS_BATCH); /* 16 times 1, then ACCEPTS_BATCH */
    close(first);
    for (unsigned i = 0; i < ARRAY_LEN(clients); i++)
        close(clients[i]);
}
