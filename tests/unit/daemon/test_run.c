/*
 * daemon/run: which signal leads to what, and what the end of the server says of the end of the
 * process.
 */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "daemon/run.h"
#include "support/log_lines.h"
#include "support/manager.h"
#include "support/suite.h"
#include "unit/daemon/run_stubs.h"

static void terminate(void)
{
    send_signal(SIGTERM);
}

static void reload_and_end(void)
{
    send_signal(SIGHUP);
    server.on_watch = last_session_ends;
}

static const int draining_signals[] = {SIGTERM, SIGQUIT};

GROUP(signals, setup, teardown);

TEST_EACH(signals, a_drain_ends_with_the_last_session, ARRAY_LEN(draining_signals))
{
    server.on_drain = last_session_ends;
    send_signal(draining_signals[_i]);
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    ck_assert_uint_eq(server.drains, 1);
    ck_assert_uint_eq(server.stops, 1);
    EXPECT_LOG_LINES("draining: accepts no more clients; sessions left: 7", 1);
    EXPECT_LOG_LINES("stopped; all sessions have finished", 1);
    ck_assert(told("STOPPING=1\nSTATUS=Draining, sessions left: 7\n"));
}

TEST_EACH(signals, a_second_sigterm_does_not_wait, ARRAY_LEN(draining_signals))
{
    server.on_drain = terminate;
    send_signal(draining_signals[_i]);
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    ck_assert_uint_eq(server.drains, 1);
    ck_assert_uint_eq(server.stops, 1);
    EXPECT_LOG_LINES("stopped at once; sessions reset: 7", 1);
}

TEST(signals, sigint_does_not_drain)
{
    send_signal(SIGINT);
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    ck_assert_uint_eq(server.drains, 0);
    ck_assert_uint_eq(server.stops, 1);
    EXPECT_LOG_LINES("stopped at once; sessions reset: 7", 1);
}

TEST(signals, drain_timeout_is_never_early)
{
    int64_t began_at_ns = clock_now_ns();

    changes.running.process.drain_timeout_ns = 50 * NS_PER_MS;
    send_signal(SIGTERM);
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    ck_assert_int_ge(clock_now_ns() - began_at_ns, 50 * NS_PER_MS);
    ck_assert_uint_eq(server.stops, 1);
    EXPECT_LOG_LINES("drain_timeout is over; sessions reset: 7", 1);
}

TEST(signals, drain_delay_comes_before_the_drain_and_its_timeout)
{
    int64_t began_at_ns = clock_now_ns();

    changes.running.process.drain_delay_ns = 60 * NS_PER_MS;
    changes.running.process.drain_timeout_ns = 50 * NS_PER_MS;
    send_signal(SIGTERM);
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    ck_assert_int_ge(clock_now_ns() - began_at_ns, 110 * NS_PER_MS);
    ck_assert_uint_eq(server.drains, 1);
    EXPECT_LOG_LINES("draining: accepts clients for another 0.1 s (drain_delay)", 1);
    EXPECT_LOG_LINES("draining: accepts no more clients", 1);
    EXPECT_LOG_LINES("drain_timeout is over; sessions reset: 7", 1);
}

/* Three looks, a signal that drains, three looks, a second SIGQUIT, three more, and the end. */
static void step_with_watch(void)
{
    switch (server.watches) {
    case 3: send_signal(SIGQUIT); break;
    case 6: send_signal(SIGQUIT); break;
    case 9: last_session_ends(); break;
    default: break;
    }
}

TEST(signals, the_loops_are_watched_while_running_and_while_draining)
{
    server.on_watch = step_with_watch;
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    ck_assert_uint_eq(server.watches, 9);
    ck_assert_uint_eq(server.drains, 1);
    EXPECT_LOG_LINES("SIGQUIT from pid ", 2);
}

TEST(signals, process_sleeps_while_nothing_is_due)
{
    server.watch_interval_ns = CLOCK_NEVER;
    server.on_drain = last_session_ends;
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    ck_assert_int_eq(server.first_wait_ms, -1);
    ck_assert_uint_eq(server.watches, 0);
}

TEST(signals, service_manager_is_fed_with_the_checks_of_the_loops)
{
    manager_watch("1000000", NULL);
    server.on_watch = step_with_watch;
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    ck_assert(told("WATCHDOG=1"));
}

static void ask_for_statistics(void)
{
    switch (server.watches) {
    case 1: send_signal(SIGRTMIN); break;
    case 2: send_signal(SIGRTMIN); break;
    case 3: send_signal(SIGTERM); break;
    case 5: send_signal(SIGRTMIN); break;
    case 6: last_session_ends(); break;
    default: break;
    }
}

TEST(signals, statistics_are_written_while_running_and_while_draining)
{
    server.on_watch = ask_for_statistics;
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    ck_assert_uint_eq(server.stats, 3);
    EXPECT_LOG_LINES("SIGRTMIN from pid ", 3);
}

TEST(signals, sighup_reloads)
{
    send_signal(SIGHUP);
    send_signal(SIGINT);
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    ck_assert_uint_eq(changes.begun, 1);
}

TEST(signals, a_reload_while_draining_is_refused)
{
    server.on_drain = reload_and_end;
    send_signal(SIGTERM);
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    ck_assert_uint_eq(changes.begun, 0);
    EXPECT_LOG_LINES("reload: refused: draining", 1);
}

/* While the control loop changes the server: each signal; then the change ends. */
static void signal_meanwhile(void)
{
    switch (server.watches) {
    case 2: send_signal(SIGHUP); break;
    case 3: send_signal(SIGRTMIN); break;
    case 4: ck_assert_uint_eq(server.stats + changes.given_up, 0); break;
    case 5: send_signal(SIGTERM); break;
    case 6: send_signal(SIGTERM); break;
    case 8:
        ck_assert_uint_eq(server.drains + server.stops, 0);
        ck_assert_int_eq(eventfd_write(changes.fd, 1), 0);
        break;
    default: break;
    }
}

TEST(signals, signals_wait_for_a_reload_and_a_stop_signal_hastens_it)
{
    changes.applying = true;
    server.on_watch = signal_meanwhile;
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    ck_assert_uint_eq(changes.begun, 1);
    ck_assert_uint_eq(changes.given_up, 3);
    ck_assert_uint_eq(changes.steps, 1);
    ck_assert_uint_eq(server.stats, 1);
    ck_assert_uint_eq(server.drains, 1);
    ck_assert_uint_eq(server.stops, 1);
    EXPECT_LOG_LINES("stopped at once", 1);
}

static const int stops_in_turn[][2] = {{SIGINT, SIGTERM}, {SIGTERM, SIGTERM}};
static const int *next_stops;

static void stop_behind_eight(void)
{
    switch (server.watches) {
    case 1:
        for (unsigned i = 0; i < 8; i++)
            send_signal(SIGRTMIN);
        break;
    case 3: send_signal(next_stops[0]); break;
    case 5: send_signal(next_stops[1]); break;
    case 7: ck_assert_int_eq(eventfd_write(changes.fd, 1), 0); break;
    case 9: last_session_ends(); break; /* it drains: the test ends, and fails */
    default: break;
    }
}

TEST_EACH(signals, stop_signal_does_not_replace_earlier_signals, ARRAY_LEN(stops_in_turn))
{
    next_stops = stops_in_turn[_i];
    changes.applying = true;
    server.on_watch = stop_behind_eight;
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    ck_assert_uint_eq(server.stats, 8);
    EXPECT_LOG_LINES("stopped at once", 1);
}

static void look_until_due(void)
{
    if (changes.looks > 0)
        send_signal(SIGINT);
}

TEST(signals, unconfirmed_reload_is_checked_in_time)
{
    server.watch_interval_ns = CLOCK_NEVER;
    changes.due_at_ns = clock_now_ns() + 20 * NS_PER_MS;
    server.polls = 1; /* the test's poll() does not end it */
    server.on_look = look_until_due;
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    ck_assert_uint_gt(changes.looks, 0);
}

/* How it comes to server_stop(): at once, after the last session, after drain_timeout. */
static const struct {
    int signal;
    void (*on_drain)(void);
    int64_t drain_timeout_ns;
    const char *line;
} ways[] = {
    {SIGINT, NULL, 0, "stopped at once; sessions reset: 7"},
    {SIGTERM, terminate, 0, "stopped at once; sessions reset: 7"},
    {SIGTERM, last_session_ends, 0, "stopped; all sessions have finished"},
    {SIGTERM, NULL, NS_PER_MS, "drain_timeout is over; sessions reset: 7"},
};

static enum exit_code stop_in_way(int i, int stop_rc)
{
    server.stop_rc = stop_rc;
    server.on_drain = ways[i].on_drain;
    changes.running.process.drain_timeout_ns = ways[i].drain_timeout_ns;
    send_signal(ways[i].signal);
    return run_until_stopped(run, &conf, &alone);
}

TEST_EACH(signals, caller_may_free_everything_when_all_threads_have_ended, ARRAY_LEN(ways))
{
    alone = false;
    ck_assert_int_eq(stop_in_way(_i, 0), EXIT_CODE_OK);
    ck_assert(alone);
}

TEST_EACH(signals, hanging_loop_is_a_failure_and_reported_to_the_caller, ARRAY_LEN(ways))
{
    alone = true;
    ck_assert_int_eq(stop_in_way(_i, -ETIMEDOUT), EXIT_CODE_FAILED);
    ck_assert(!alone);
    ck_assert_uint_eq(server.stops, 1);
    ck_assert_uint_eq(log_lines_with("stopped"), 0);
    ck_assert_uint_eq(log_lines_with("cut"), 0);
}

TEST_EACH(signals, slow_executor_work_is_reported_to_the_caller_and_no_failure, ARRAY_LEN(ways))
{
    alone = true;
    ck_assert_int_eq(stop_in_way(_i, -EBUSY), EXIT_CODE_OK);
    ck_assert(!alone);
    ck_assert_uint_eq(server.stops, 1);
    EXPECT_LOG_LINES(ways[_i].line, 1);
}

TEST(signals, stop_time_is_extended_before_a_thread_can_hang)
{
    send_signal(SIGINT);
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    ck_assert(told("EXTEND_TIMEOUT_USEC="));
}
