/*
 * sessions/overload: when what waits for clients and servers is too much, and when it is no more.
 */
#include <stdatomic.h>

#include "base/clock.h"
#include "engine/loop.h"
#include "limits/connection_limit.h"
#include "net/memory_account.h"
#include "server/server_conf.h"
#include "server/threads.h"
#include "sessions/overload.h"
#include "stats/figure_log.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/server_confs.h"
#include "support/suite.h"
#include "support/until.h"

/* Of 1000 bytes an episode begins above 750 and ends at 500. */
static const struct overload_conf conf = {.max_buffered_bytes = 1000};

static struct threads threads;
static struct connection_limit limit;
static struct overload *overload;
static struct memory_account *account;
static size_t held;

static void setup(void)
{
    static const struct server_conf server = {.boss = {.threads = 1},
                                              .worker = {.threads = {.n = 2},
                                                         .io_ratio = 50,
                                                         .task_quantum_ns = NS_PER_MS,
                                                         .max_pending_tasks = 64},
                                              SMALL_EXECUTORS(1)};

    log_lines_capture(LOG_LEVEL_INFO);
    ck_assert_int_eq(threads_create(&threads, &server), 0);
    connection_limit_init(&limit, &(struct quota_conf){0});
    ck_assert_int_eq(
        overload_create(&overload, &conf, threads_control(&threads), threads.workers, &limit), 0);
    ck_assert_int_eq(overload_start(overload), 0);
    account = overload_buffered(overload);
    held = 0;
}

static void teardown(void)
{
    ck_assert_int_eq(threads_end_boss(&threads), 0);
    ck_assert_int_eq(threads_end_workers(&threads), 0);
    ck_assert_int_eq(threads_end_control(&threads), 0);
    ck_assert_int_eq(threads_end_executors(&threads), 0);
    overload_destroy(overload);
    threads_destroy(&threads);
}

static void hold(size_t bytes)
{
    memory_account_charge(account, held, bytes);
    held = bytes;
}

static bool is_closed(void)
{
    return atomic_load(&limit.closed_by) != NULL;
}

GROUP(max_buffered, setup, teardown);

TEST(max_buffered, above_three_quarters_no_client_is_accepted_until_a_half_is_left)
{
    hold(750);
    ck_assert(!memory_account_is_over(account));
    ck_assert(!is_closed());
    hold(751);
    ck_assert(memory_account_is_over(account));
    ck_assert_str_eq(atomic_load(&limit.closed_by), "three quarters of max_buffered of [reactord]");
    hold(501);
    PAUSE_MS(60); /* it looks every 20 ms */
    ck_assert(memory_account_is_over(account));
    ck_assert(is_closed());
    hold(500);
    UNTIL(!memory_account_is_over(account));
    ck_assert(!is_closed());
    EXPECT_LOG_LINES("overload is over after ", 1);
}

TEST(max_buffered, each_episode_ends_and_another_can_begin)
{
    for (unsigned i = 1; i <= 5; i++) {
        hold(1000);
        ck_assert(memory_account_is_over(account));
        ck_assert(is_closed());
        EXPECT_LOG_LINES("no client is accepted", i);
        hold(0);
        UNTIL(log_lines_with("overload is over after ") == i);
        UNTIL(!memory_account_is_over(account));
        ck_assert(!is_closed());
    }
}

/* Another loop frees the buffers just after they were too much. */
TEST(max_buffered, episode_of_max_buffered_is_not_logged_as_one_of_max_memory)
{
    ck_assert(!atomic_exchange(&account->is_over, true));
    account->over(account->cookie);
    EXPECT_LOG_LINES("overload: 0 bytes are buffered, the limit is 750, three quarters of max_", 1);
    UNTIL(!memory_account_is_over(account));
    ck_assert_uint_eq(log_lines_with("max_memory"), 0);
}

TEST(max_buffered, without_a_limit_there_is_no_account)
{
    struct overload *none = overload;

    ck_assert_int_eq(overload_create(&none, &(struct overload_conf){0}, threads_control(&threads),
                                     threads.workers, &limit),
                     0);
    ck_assert_ptr_null(none);
    ck_assert_ptr_null(overload_buffered(none));
    ck_assert_int_eq(overload_start(none), 0);
    overload_figures(none, figure_log());
    overload_destroy(none);
}
