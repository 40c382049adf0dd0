/* system/watchdog_feeder: looks as often as it must, and feeds only while all loops turn. */
#include <check.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "system/watchdog_feeder.h"
#include "server/server.h"
#include "support/log_lines.h"
#include "support/manager.h"
#include "support/suite.h"

#define WITHHELD "watchdog is not fed"
#define RESUMED  "is fed again"

/* The server of these tests: it turns when a test says so. */
static int64_t watch_interval_ns;
static bool turning;
static unsigned watched;

bool server_watch(struct server *sv)
{
    (void)sv;
    watched++;
    return turning;
}

int64_t server_watch_interval_ns(const struct server *sv)
{
    (void)sv;
    return watch_interval_ns;
}

static bool at_rest;

bool server_doze(struct server *sv)
{
    (void)sv;
    return at_rest;
}

int server_watch_fd(const struct server *sv)
{
    (void)sv;
    return 4711;
}

static struct watchdog_feeder watchdog_feeder;

static void setup(void)
{
    manager_open();
    log_lines_capture(LOG_LEVEL_NOTICE);
    turning = true;
    at_rest = false;
    watched = 0;
    watch_interval_ns = CLOCK_NEVER;
}

static void wait_until(int64_t at_ns)
{
    const struct timespec at = {.tv_sec = at_ns / NS_PER_S, .tv_nsec = at_ns % NS_PER_S};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0)
        ;
}

/* Wait for the next look and take it: was the watchdog fed? */
static bool look(void)
{
    bool fed;

    wait_until(watchdog_feeder_due_at_ns(&watchdog_feeder));
    watchdog_feeder_look(&watchdog_feeder, false);
    fed = strcmp(manager_received(), "WATCHDOG=1") == 0;
    ck_assert_str_eq(manager_received(), "");
    return fed;
}

/* When the last look was, whatever has kept this thread since. */
static int64_t looked_at_ns(void)
{
    return watchdog_feeder_due_at_ns(&watchdog_feeder) - watch_interval_ns;
}

GROUP(looks, setup, manager_close);

TEST(looks, nothing_is_due_without_watchdog_and_stall_threshold)
{
    watchdog_feeder_start(&watchdog_feeder, NULL);
    ck_assert_int_eq(watchdog_feeder_due_at_ns(&watchdog_feeder), CLOCK_NEVER);
    watchdog_feeder_look(&watchdog_feeder, false);
    ck_assert_uint_eq(watched, 0);
    ck_assert_str_eq(manager_received(), "");
}

TEST(looks, loops_are_checked_without_a_watchdog)
{
    watch_interval_ns = 5 * NS_PER_MS;
    watchdog_feeder_start(&watchdog_feeder, NULL);
    for (unsigned i = 1; i <= 5; i++) {
        int64_t before_ns = clock_now_ns();

        ck_assert(!look());
        ck_assert_uint_eq(watched, i);
        ck_assert_int_ge(watchdog_feeder_due_at_ns(&watchdog_feeder),
                         before_ns + watch_interval_ns);
    }
}

TEST(looks, check_that_is_not_due_does_nothing)
{
    watch_interval_ns = 3600 * NS_PER_S;
    manager_watch("7200000000", NULL);
    watchdog_feeder_start(&watchdog_feeder, NULL);
    ck_assert(look());
    watchdog_feeder_look(&watchdog_feeder, false);
    ck_assert_uint_eq(watched, 1);
    ck_assert_str_eq(manager_received(), "");
}

TEST(looks, without_checks_of_the_server_the_watchdog_is_fed_twice_in_its_period)
{
    manager_watch("40000", NULL);
    watchdog_feeder_start(&watchdog_feeder, NULL);
    for (int i = 0; i < 5; i++) {
        int64_t before_ns = clock_now_ns();

        ck_assert(look());
        ck_assert_int_ge(watchdog_feeder_due_at_ns(&watchdog_feeder), before_ns + 20 * NS_PER_MS);
        ck_assert_int_le(watchdog_feeder_due_at_ns(&watchdog_feeder),
                         clock_now_ns() + 20 * NS_PER_MS);
    }
}

/*
 * Half of the period are 100 ms and a look is each 15 ms, so from 85 ms on the next look would be
 * too late.
 */
TEST(looks, watchdog_is_fed_with_the_last_check_before_half_of_the_period)
{
    int64_t fed_at_ns;

    watch_interval_ns = 15 * NS_PER_MS;
    manager_watch("200000", NULL);
    watchdog_feeder_start(&watchdog_feeder, NULL);
    ck_assert(look());
    fed_at_ns = looked_at_ns();
    for (int feeds = 0; feeds < 3;) {
        bool fed = look();

        if (fed)
            ck_assert_int_gt(looked_at_ns() - fed_at_ns, 85 * NS_PER_MS);
        else
            ck_assert_int_le(looked_at_ns() - fed_at_ns, 85 * NS_PER_MS);
        fed_at_ns = fed ? looked_at_ns() : fed_at_ns;
        feeds += fed;
    }
}

TEST(looks, watchdog_is_not_fed_while_a_loop_stalls_and_as_soon_as_it_turns)
{
    watch_interval_ns = 5 * NS_PER_MS;
    manager_watch("20000", NULL);
    watchdog_feeder_start(&watchdog_feeder, NULL);
    ck_assert(look());
    for (int episode = 1; episode <= 2; episode++) {
        turning = false;
        for (int i = 0; i < 8; i++)
            ck_assert(!look());
        EXPECT_LOG_LINES(WITHHELD, episode);
        EXPECT_LOG_LINES(RESUMED, episode - 1);
        turning = true;
        ck_assert(look());
        EXPECT_LOG_LINES(RESUMED, episode);
    }
}

TEST(looks, stall_that_ends_before_the_watchdog_is_due_is_not_logged)
{
    watch_interval_ns = NS_PER_MS;
    manager_watch("7200000000", NULL);
    watchdog_feeder_start(&watchdog_feeder, NULL);
    ck_assert(look());
    turning = false;
    for (int i = 0; i < 5; i++)
        ck_assert(!look());
    ck_assert_uint_eq(watched, 6);
    ck_assert_uint_eq(log_lines_with(WITHHELD), 0);
}

TEST(looks, pause_of_the_process_is_logged_and_no_loop_is_judged)
{
    watch_interval_ns = NS_PER_MS;
    manager_watch("7200000000", NULL);
    watchdog_feeder_start(&watchdog_feeder, NULL);
    ck_assert(look());
    turning = false;
    wait_until(clock_now_ns() + WATCHDOG_FEEDER_AWAY_NS + NS_PER_MS);
    ck_assert(!look());
    ck_assert_uint_eq(watched, 1);
    EXPECT_LOG_LINES("the main thread did not run for about ", 1);
    ck_assert(!look());
    ck_assert_uint_eq(watched, 2);
}

TEST(looks, main_thread_that_is_always_late_hides_no_stalled_loop)
{
    watch_interval_ns = NS_PER_MS;
    manager_watch("2000", NULL);
    watchdog_feeder_start(&watchdog_feeder, NULL);
    ck_assert(look());
    turning = false;
    wait_until(clock_now_ns() + WATCHDOG_FEEDER_AWAY_NS + NS_PER_MS);
    ck_assert(look());
    ck_assert_uint_eq(watched, 1);
    for (unsigned i = 2; i <= 3; i++) {
        wait_until(clock_now_ns() + WATCHDOG_FEEDER_AWAY_NS + NS_PER_MS);
        ck_assert(!look());
        ck_assert_uint_eq(watched, i);
    }
    EXPECT_LOG_LINES("the main thread did not run for about ", 3);
    EXPECT_LOG_LINES(WITHHELD, 1);
}

TEST(looks, while_all_loops_rest_nothing_is_due)
{
    watch_interval_ns = NS_PER_MS;
    watchdog_feeder_start(&watchdog_feeder, NULL);
    ck_assert(!look());
    ck_assert_int_eq(watchdog_feeder_fd(&watchdog_feeder), -1);
    at_rest = true;
    ck_assert(!look());
    ck_assert_int_eq(watchdog_feeder_due_at_ns(&watchdog_feeder), CLOCK_NEVER);
    ck_assert_int_eq(watchdog_feeder_fd(&watchdog_feeder), 4711);
    watchdog_feeder_look(&watchdog_feeder, false); /* woken by something else */
    ck_assert_uint_eq(watched, 2);
    ck_assert_int_eq(watchdog_feeder_due_at_ns(&watchdog_feeder), CLOCK_NEVER);
}

TEST(looks, loop_that_runs_again_is_judged_two_intervals_later)
{
    int64_t before_ns;

    watch_interval_ns = NS_PER_MS;
    at_rest = true;
    watchdog_feeder_start(&watchdog_feeder, NULL);
    ck_assert(!look());
    wait_until(clock_now_ns() + WATCHDOG_FEEDER_AWAY_NS + NS_PER_MS); /* is no absence */
    at_rest = turning = false;
    before_ns = clock_now_ns();
    watchdog_feeder_look(&watchdog_feeder, true);
    ck_assert_uint_eq(watched, 1);
    ck_assert_int_eq(watchdog_feeder_fd(&watchdog_feeder), -1);
    ck_assert_int_ge(watchdog_feeder_due_at_ns(&watchdog_feeder), before_ns + 2 * NS_PER_MS);
    ck_assert_int_le(watchdog_feeder_due_at_ns(&watchdog_feeder), clock_now_ns() + 2 * NS_PER_MS);
    ck_assert(!look());
    ck_assert_uint_eq(watched, 2);
    ck_assert_uint_eq(log_lines_with("did not run"), 0);
}

TEST(looks, watchdog_is_fed_while_all_loops_rest)
{
    watch_interval_ns = NS_PER_MS;
    at_rest = true;
    manager_watch("40000", NULL);
    watchdog_feeder_start(&watchdog_feeder, NULL);
    for (unsigned i = 1; i <= 5; i++) {
        int64_t before_ns = clock_now_ns();

        ck_assert(look());
        ck_assert_uint_eq(watched, i);
        ck_assert_int_ge(watchdog_feeder_due_at_ns(&watchdog_feeder), before_ns + 20 * NS_PER_MS);
        ck_assert_int_ne(watchdog_feeder_due_at_ns(&watchdog_feeder), CLOCK_NEVER);
    }
}
