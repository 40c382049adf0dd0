/*
 * limits/connection_limit: who waits for room is told by who leaves, on its own loop, and nobody
 * waits while there is room.
 */
#include <pthread.h>

#include "base/clock.h"
#include "limits/connection_limit.h"
#include "support/loop_runner.h"
#include "support/suite.h"
#include "support/until.h"

static struct loop *loop;
static struct connection_limit limit;
static struct quota own;
static struct connection_limit_waiter waiters[2];
static atomic_uint told[2];

static void on_again(struct connection_limit_waiter *w)
{
    ck_assert(loop_is_current(loop));
    atomic_fetch_add(&told[w - waiters], 1);
}

static void setup(void)
{
    loop = loop_runner_create();
    connection_limit_init(&limit, &(struct quota_conf){.max_connections = 3});
    quota_init(&own, &(struct quota_conf){.max_connections = 2});
    for (int i = 0; i < 2; i++)
        connection_limit_add(&limit, &waiters[i], loop, on_again);
}

static void teardown(void)
{
    loop_runner_destroy(loop);
}

struct ask {
    int waiter;
    int64_t wait_ns;
};

static void ask(void *arg)
{
    struct ask *a = arg;

    a->wait_ns = connection_limit_enter_or_wait(&limit, &own, &waiters[a->waiter]);
}

/* What a boss loop is told that asks. */
static int64_t asked(int waiter)
{
    struct ask a = {.waiter = waiter};

    loop_runner_call(loop, ask, &a);
    return a.wait_ns;
}

GROUP(room, setup, teardown);

TEST(room, boss_waiting_at_the_limit_is_notified_when_a_connection_ends)
{
    ck_assert_int_eq(asked(0), 0);
    ck_assert_int_eq(asked(0), 0);
    ck_assert_int_eq(asked(0), CONNECTION_LIMIT_RETRY_NS);
    ck_assert_int_eq(asked(1), CONNECTION_LIMIT_RETRY_NS);
    ck_assert_int_eq(asked(1), CONNECTION_LIMIT_RETRY_NS); /* again, as after a spurious look */
    ck_assert_str_eq(connection_limit_full_of(&limit, &own), "max_connections");
    PAUSE_MS(20);
    ck_assert_uint_eq(atomic_load(&told[0]), 0);
    connection_limit_leave(&limit, &own);
    ck_assert_str_eq(connection_limit_full_of(&limit, &own), "a connection limit");
    UNTIL(atomic_load(&told[0]) == 1 && atomic_load(&told[1]) == 1);
    ck_assert_int_eq(asked(1), 0);
    connection_limit_leave(&limit, &own);
    PAUSE_MS(20);
    ck_assert_uint_eq(atomic_load(&told[0]), 1); /* it did not ask again */
}

TEST(room, boss_waiting_for_the_process_limit_is_notified_by_another_listener)
{
    struct quota other;

    quota_init(&other, &(struct quota_conf){0});
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(connection_limit_enter(&limit, &other), 0);
    ck_assert_int_eq(asked(0), CONNECTION_LIMIT_RETRY_NS);
    ck_assert_str_eq(connection_limit_full_of(&limit, &own), "max_connections of [reactord]");
    ck_assert_uint_eq(atomic_load(&own.open), 0); /* and it holds no place meanwhile */
    connection_limit_leave(&limit, &other);
    UNTIL(atomic_load(&told[0]) == 1);
    ck_assert_int_eq(asked(0), 0);
}

static void expect_open(unsigned process, unsigned listener)
{
    ck_assert_uint_eq(atomic_load(&limit.quota.open), process);
    ck_assert_uint_eq(atomic_load(&own.open), listener);
}

TEST(room, withdrawn_admission_frees_a_connection)
{
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(connection_limit_enter(&limit, &own), 0);
    expect_open(2, 2);
    ck_assert_int_eq(asked(0), CONNECTION_LIMIT_RETRY_NS);
    expect_open(2, 2); /* asking takes nothing */
    connection_limit_withdraw(&limit, &own);
    UNTIL(atomic_load(&told[0]) == 1);
    expect_open(1, 1);
    connection_limit_leave(&limit, &own);
    expect_open(0, 0);
}

TEST(room, boss_waiting_for_the_rate_gets_the_delay_and_no_notification)
{
    int64_t wait_ns;

    quota_init(&own, &(struct quota_conf){.rate = {10, NS_PER_S, 1}});
    ck_assert_int_eq(asked(0), 0);
    wait_ns = asked(0);
    ck_assert_int_gt(wait_ns, 0);
    ck_assert_int_le(wait_ns, 100 * NS_PER_MS);
    ck_assert_str_eq(connection_limit_full_of(&limit, &own), "connection_rate");
    connection_limit_leave(&limit, &own);
    PAUSE_MS(20);
    ck_assert_uint_eq(atomic_load(&told[0]), 0);
}

TEST(room, an_ended_boss_is_not_notified)
{
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(asked(0), 0);
    ck_assert_int_eq(asked(0), CONNECTION_LIMIT_RETRY_NS);
    loop_runner_stop(loop);
    connection_limit_leave(&limit, &own);
    ck_assert_int_eq(atomic_load(&waiters[0].state), CONNECTION_LIMIT_NONE);
    ck_assert_uint_eq(atomic_load(&limit.waiting), 0);
    loop_destroy(loop);
    loop = loop_runner_create();
}

/* ---- note: limit, with threads ---- */

#define ROUNDS 3000

static atomic_uint let_in;

/*
 * A boss that admits whenever it can, and else waits to be told: if a wake-up were lost it would
 * wait for ever.
 */
static void take_all(struct connection_limit_waiter *w)
{
    while (connection_limit_enter_or_wait(&limit, &own, w) == 0)
        atomic_fetch_add(&let_in, 1);
}

static void begin(void *arg)
{
    take_all(arg);
}

/* Each lets go of what the bosses have let in, one by one. */
static void *let_go(void *arg)
{
    atomic_uint *left = arg;

    while (atomic_fetch_sub(left, 1) - 1 < ROUNDS) {
        int64_t limit_at_ns = clock_now_ns() + UNTIL_LIMIT_NS;
        unsigned n;

        while ((n = atomic_load(&let_in)) == 0 || !atomic_compare_exchange_weak(&let_in, &n, n - 1))
            ck_assert_msg(clock_now_ns() < limit_at_ns, "nobody is let in any more");
        connection_limit_leave(&limit, &own);
    }
    return NULL;
}

TEST(room, no_wake_up_is_lost_when_bosses_and_workers_race)
{
    struct loop *second = loop_runner_create();
    atomic_uint left = ROUNDS;
    pthread_t threads[3];

    connection_limit_init(&limit, &(struct quota_conf){.max_connections = 1});
    connection_limit_add(&limit, &waiters[0], loop, take_all);
    connection_limit_add(&limit, &waiters[1], second, take_all);
    loop_runner_call(loop, begin, &waiters[0]);
    loop_runner_call(second, begin, &waiters[1]);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, let_go, &left), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    loop_runner_destroy(second);
}

/* ---- while it runs ---- */

TEST_EACH(room, waiting_boss_is_notified_when_a_limit_is_raised, 2)
{
    struct quota_conf more = {.max_connections = 9};

    connection_limit_set(&limit, _i == 0 ? NULL : &own, &(struct quota_conf){.max_connections = 1});
    ck_assert_int_eq(asked(0), 0);
    ck_assert_int_eq(asked(0), CONNECTION_LIMIT_RETRY_NS);
    connection_limit_set(&limit, _i == 0 ? NULL : &own, &more);
    UNTIL(atomic_load(&told[0]) == 1);
    ck_assert_int_eq(asked(0), 0);
}

TEST(room, process_limit_switched_on_counts_connections_that_are_open)
{
    connection_limit_set(&limit, NULL, &(struct quota_conf){0});
    connection_limit_set(&limit, &own, &(struct quota_conf){0});
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(asked(0), 0);
    connection_limit_set(&limit, NULL, &(struct quota_conf){.max_connections = 5});
    ck_assert_int_eq(asked(0), CONNECTION_LIMIT_RETRY_NS);
    connection_limit_leave(&limit, &own);
    UNTIL(atomic_load(&told[0]) == 1);
    ck_assert_int_eq(asked(0), 0);
}

static void leave_the_list(void *arg)
{
    connection_limit_remove(&limit, arg);
}

TEST(room, removed_waiter_is_not_notified_and_does_not_stop_notifications)
{
    ck_assert_int_eq(asked(0), 0);
    ck_assert_int_eq(asked(0), 0);
    ck_assert_int_eq(asked(0), CONNECTION_LIMIT_RETRY_NS);
    ck_assert_int_eq(asked(1), CONNECTION_LIMIT_RETRY_NS);
    for (int i = 0; i < 2; i++) /* also twice */
        loop_runner_call(loop, leave_the_list, &waiters[0]);
    ck_assert_uint_eq(atomic_load(&limit.waiting), 1);
    waiters[0] = (struct connection_limit_waiter){.loop = NULL}; /* freed */
    connection_limit_leave(&limit, &own);
    UNTIL(atomic_load(&told[1]) == 1);
    ck_assert_uint_eq(atomic_load(&told[0]), 0);
    ck_assert_uint_eq(atomic_load(&limit.waiting), 0);
}

static struct quota listeners[2];

/* Take and leave the one place of the process, each thread for a listener of its own. */
static void *come_and_go(void *arg)
{
    struct quota *listener = arg;

    for (int i = 0; i < 100 * ROUNDS; i++)
        if (connection_limit_enter(&limit, listener) == 0)
            connection_limit_leave(&limit, listener);
    return NULL;
}

TEST(room, connection_refused_by_the_process_limit_is_not_counted_at_its_listener)
{
    pthread_t threads[2];

    connection_limit_init(&limit, &(struct quota_conf){.max_connections = 1});
    for (int i = 0; i < 2; i++) {
        quota_init(&listeners[i], &(struct quota_conf){.max_connections = 1000000});
        ck_assert_int_eq(pthread_create(&threads[i], NULL, come_and_go, &listeners[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(atomic_load(&limit.quota.open), 0);
    ck_assert_uint_eq(atomic_load(&listeners[0].open), 0);
    ck_assert_uint_eq(atomic_load(&listeners[1].open), 0);
}

static struct hold held;

static void pass(void *arg)
{
    *(int64_t *)arg = connection_limit_pass_or_wait(&limit, &held, &waiters[0]);
}

static int64_t passed(void)
{
    int64_t wait_ns;

    loop_runner_call(loop, pass, &wait_ns);
    return wait_ns;
}

TEST(room, boss_waiting_for_a_hold_is_notified_when_connections_are_allowed)
{
    ck_assert_int_eq(passed(), 0);
    hold_close(&held);
    ck_assert_int_eq(passed(), CONNECTION_LIMIT_RETRY_NS);
    ck_assert_int_eq(passed(), CONNECTION_LIMIT_RETRY_NS);
    (void)hold_allow(&held, 1);
    connection_limit_retry(&limit);
    UNTIL(atomic_load(&told[0]) == 1);
    ck_assert_int_eq(passed(), 0);
    ck_assert_int_eq(passed(), CONNECTION_LIMIT_RETRY_NS);
    hold_open(&held);
    connection_limit_retry(&limit);
    UNTIL(atomic_load(&told[0]) == 2);
    ck_assert_int_eq(passed(), 0);
    ck_assert_uint_eq(atomic_load(&limit.waiting), 0);
}

static bool is_over;

static void begin_dry(void *arg)
{
    *(int64_t *)arg = connection_limit_begin(&limit, &own, &waiters[0], QUOTA_OVER_LOG, &is_over);
}

static int64_t begun(void)
{
    int64_t wait_ns;

    loop_runner_call(loop, begin_dry, &wait_ns);
    return wait_ns;
}

TEST(room, dry_run_lets_in_above_the_limit_of_the_listener_only)
{
    static const bool over[] = {false, false, true};

    for (unsigned i = 0; i < ARRAY_LEN(over); i++) {
        ck_assert_int_eq(begun(), 0);
        ck_assert_int_eq(is_over, over[i]);
    }
    ck_assert_uint_eq(atomic_load(&own.open), 3);
    ck_assert_int_eq(begun(), CONNECTION_LIMIT_RETRY_NS); /* the limit of the process */
    connection_limit_undo(&limit, &own, true);
    UNTIL(atomic_load(&told[0]) == 1);
    connection_limit_undo(&limit, &own, false);
    connection_limit_undo(&limit, &own, false);
    ck_assert_uint_eq(atomic_load(&own.open), 0);
    ck_assert_uint_eq(atomic_load(&limit.quota.open), 0);
    ck_assert_uint_eq(atomic_load(&limit.waiting), 0);
}

TEST(room, dry_run_of_a_rate_takes_no_token_from_a_client_above_it)
{
    quota_init(&own, &(struct quota_conf){.rate = {1, 3600 * NS_PER_S, 1}});
    ck_assert_int_eq(begun(), 0);
    ck_assert(!is_over);
    ck_assert_int_eq(begun(), 0);
    ck_assert(is_over);
    connection_limit_undo(&limit, &own, true);
    ck_assert_int_eq(begun(), 0);
    ck_assert(is_over); /* undoing it gave no token back */
    connection_limit_undo(&limit, &own, true);
    connection_limit_undo(&limit, &own, false);
    ck_assert_int_eq(begun(), 0);
    ck_assert(!is_over);
}
