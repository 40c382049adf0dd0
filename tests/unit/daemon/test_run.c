/*
 * daemon/run: which signal leads to what, and what the end of the server says of the end of the
 * process.
 */
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/run.h"
#include "support/log_lines.h"
#include "support/manager.h"
#include "support/suite.h"

/*
 * The server of these tests counts what it is asked for, and does what a test wants in the middle
 * of it.
 */
static struct {
    struct server_events events;
    void (*on_drain)(void);
    void (*on_watch)(void);
    int stop_rc;
    int64_t watch_interval_ns;
    int first_wait_ms; /* of poll(2) */
    unsigned polls;
    unsigned drains, stops, watches, stats;
} server;

void server_drain(struct server *sv)
{
    (void)sv;
    server.drains++;
    if (server.on_drain)
        server.on_drain();
}

int server_stop(struct server *sv, unsigned *cut)
{
    (void)sv;
    server.stops++;
    *cut = 7;
    return server.stop_rc;
}

bool server_watch(struct server *sv)
{
    (void)sv;
    server.watches++;
    if (server.on_watch)
        server.on_watch();
    return true;
}

int64_t server_watch_interval_ns(const struct server *sv)
{
    (void)sv;
    return server.watch_interval_ns;
}

void server_log_stats(struct server *sv)
{
    (void)sv;
    server.stats++;
}

unsigned server_sessions(const struct server *sv)
{
    (void)sv;
    return 7;
}

static struct run *run;
static struct run_conf conf;
static bool alone;

static void setup(void)
{
    manager_open();
    log_lines_capture(LOG_LEVEL_NOTICE);
    memset(&server, 0, sizeof(server));
    server.watch_interval_ns = 2 * NS_PER_MS;
    conf = (struct run_conf){.drain_timeout_ns = 0};
    ck_assert_int_eq(run_create(&run), 0);
    server.events = run_events(run);
}

static void teardown(void)
{
    run_destroy(run);
    manager_close();
}

/* In place of libc's. A wait without end is ended by a signal, so that a test ends. */
int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    struct timespec timeout = {.tv_sec = timeout_ms / 1000,
                               .tv_nsec = timeout_ms % 1000 * NS_PER_MS};

    if (server.polls++ == 0) {
        server.first_wait_ms = timeout_ms;
        if (timeout_ms < 0 || server.watch_interval_ns == CLOCK_NEVER)
            ck_assert_int_eq(kill(getpid(), SIGTERM), 0);
    }
    return ppoll(fds, n, timeout_ms < 0 ? NULL : &timeout, NULL);
}

static void last_session_ends(void)
{
    server.events.drained(server.events.cookie);
}

static void send_signal(int number)
{
    ck_assert_int_eq(kill(getpid(), number), 0);
}

static void terminate(void)
{
    send_signal(SIGTERM);
}

/* Has the manager been told ${line} since this was asked last? */
static bool told(const char *line)
{
    const char *message;
    bool found = false;

    while (*(message = manager_received()) != '\0')
        found |= strncmp(message, line, strlen(line)) == 0;
    return found;
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
    ck_assert_uint_eq(log_lines_with("draining: accepts no more clients; sessions left: 7"), 1);
    ck_assert_uint_eq(log_lines_with("stopped; all sessions have finished"), 1);
    ck_assert(told("STOPPING=1\nSTATUS=Draining, sessions left: 7\n"));
}

TEST_EACH(signals, a_second_sigterm_does_not_wait, ARRAY_LEN(draining_signals))
{
    server.on_drain = terminate;
    send_signal(draining_signals[_i]);
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    ck_assert_uint_eq(server.drains, 1);
    ck_assert_uint_eq(server.stops, 1);
    ck_assert_uint_eq(log_lines_with("stopped at once; sessions reset: 7"), 1);
}

TEST(signals, sigint_does_not_drain)
{
    send_signal(SIGINT);
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    ck_assert_uint_eq(server.drains, 0);
    ck_assert_uint_eq(server.stops, 1);
    ck_assert_uint_eq(log_lines_with("stopped at once; sessions reset: 7"), 1);
}

TEST(signals, drain_timeout_is_never_early)
{
    int64_t began_at_ns = clock_now_ns();

    conf.drain_timeout_ns = 50 * NS_PER_MS;
    send_signal(SIGTERM);
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    ck_assert_int_ge(clock_now_ns() - began_at_ns, conf.drain_timeout_ns);
    ck_assert_uint_eq(server.stops, 1);
    ck_assert_uint_eq(log_lines_with("drain_timeout is over; sessions reset: 7"), 1);
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
    ck_assert_uint_eq(log_lines_with("SIGQUIT from pid "), 2);
}

TEST(signals, while_nothing_is_due_the_process_sleeps)
{
    server.watch_interval_ns = CLOCK_NEVER;
    server.on_drain = last_session_ends;
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    ck_assert_int_eq(server.first_wait_ms, -1);
    ck_assert_uint_eq(server.watches, 0);
}

TEST(signals, the_service_manager_is_fed_with_the_looks)
{
    manager_watch("1000000", NULL);
    server.on_watch = step_with_watch;
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    ck_assert(told("WATCHDOG=1"));
}

static void ask_for_statistics(void)
{
    switch (server.watches) {
    case 1: send_signal(SIGUSR2); break;
    case 2: send_signal(SIGUSR2); break;
    case 3: send_signal(SIGTERM); break;
    case 5: send_signal(SIGUSR2); break;
    case 6: last_session_ends(); break;
    default: break;
    }
}

TEST(signals, statistics_are_written_while_running_and_while_draining)
{
    server.on_watch = ask_for_statistics;
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    ck_assert_uint_eq(server.stats, 3);
    ck_assert_uint_eq(log_lines_with("SIGUSR2 from pid "), 3);
}

TEST(signals, sighup_is_answered_with_a_warning)
{
    send_signal(SIGHUP);
    send_signal(SIGINT);
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    ck_assert_uint_eq(log_lines_with("cannot be reloaded"), 1);
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
    conf.drain_timeout_ns = ways[i].drain_timeout_ns;
    send_signal(ways[i].signal);
    return run_until_stopped(run, &conf, &alone);
}

TEST_EACH(signals, when_all_threads_have_ended_the_caller_may_free_all, ARRAY_LEN(ways))
{
    alone = false;
    ck_assert_int_eq(stop_in_way(_i, 0), EXIT_CODE_OK);
    ck_assert(alone);
}

TEST_EACH(signals, a_loop_that_hangs_is_a_failure_and_told_to_the_caller, ARRAY_LEN(ways))
{
    alone = true;
    ck_assert_int_eq(stop_in_way(_i, -ETIMEDOUT), EXIT_CODE_FAILED);
    ck_assert(!alone);
    ck_assert_uint_eq(server.stops, 1);
    ck_assert_uint_eq(log_lines_with("stopped"), 0);
    ck_assert_uint_eq(log_lines_with("cut"), 0);
}

TEST_EACH(signals, slow_work_that_goes_on_is_no_failure_but_told_to_the_caller, ARRAY_LEN(ways))
{
    alone = true;
    ck_assert_int_eq(stop_in_way(_i, -EBUSY), EXIT_CODE_OK);
    ck_assert(!alone);
    ck_assert_uint_eq(server.stops, 1);
    ck_assert_uint_eq(log_lines_with(ways[_i].line), 1);
}

TEST(signals, time_to_stop_is_asked_for_before_a_thread_can_hang)
{
    send_signal(SIGINT);
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    ck_assert(told("EXTEND_TIMEOUT_USEC="));
}
