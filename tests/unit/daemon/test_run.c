/*
 * daemon/run: which signal leads to what, and what the end of the server says of the end of the
 * process.
 */
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "admin/admin.h"
#include "base/clock.h"
#include "config/config.h"
#include "daemon/admin_desk.h"
#include "daemon/notify.h"
#include "daemon/reload.h"
#include "daemon/run.h"
#include "daemon/upgrade.h"
#include "handover/server_upgrade.h"
#include "server/server_figures.h"
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
    void (*on_leave)(void);
    void (*on_watch)(void);
    void (*on_look)(void); /* at a reload to be confirmed */
    int stop_rc;
    int64_t watch_interval_ns;
    int first_wait_ms; /* of poll(2) */
    unsigned polls;
    unsigned drains, leaves, keeps, stops, watches, stats;
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

void server_upgrade_leave(struct server *sv)
{
    (void)sv;
    server.leaves++;
    if (server.on_leave)
        server.on_leave();
}

void server_upgrade_keep(struct server *sv)
{
    (void)sv;
    server.keeps++;
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

void server_figures_log(struct server *sv)
{
    (void)sv;
    server.stats++;
}

unsigned server_sessions(const struct server *sv)
{
    (void)sv;
    return 7;
}

/* The reload of these tests, likewise. */
static struct {
    struct config running;
    int fd;
    bool applying, open;
    int64_t due_at_ns;
    unsigned begun, given_up, steps, looks, notified;
} changes;

const struct config *reload_running(const struct reload *r)
{
    (void)r;
    return &changes.running;
}

void reload_begin(struct reload *r)
{
    (void)r;
    changes.begun++;
}

int reload_fd(const struct reload *r)
{
    (void)r;
    return changes.fd;
}

void reload_step(struct reload *r)
{
    eventfd_t n;

    (void)r;
    ck_assert_int_eq(eventfd_read(changes.fd, &n), 0);
    changes.steps++;
    changes.applying = false;
}

bool reload_is_applying(const struct reload *r)
{
    (void)r;
    return changes.applying;
}

int64_t reload_due_at_ns(const struct reload *r)
{
    (void)r;
    return changes.due_at_ns;
}

void reload_look(struct reload *r)
{
    (void)r;
    changes.looks += clock_now_ns() >= changes.due_at_ns;
    if (server.on_look)
        server.on_look();
}

void reload_give_up(struct reload *r)
{
    (void)r;
    changes.given_up++;
}

bool reload_is_open(const struct reload *r)
{
    (void)r;
    return changes.open;
}

void reload_notify_ready(const struct reload *r)
{
    (void)r;
    changes.notified++;
}

/* The upgrade of these tests, likewise. */
static struct {
    int fd;
    enum upgrade_event event; /* of the next step */
    bool starting, pending, replaced;
    unsigned begun, cancelled, old, max_old;
    int64_t timeout_ns;
    const char *last_report;
} upgrade;

int upgrade_fd(const struct upgrade *u)
{
    (void)u;
    return upgrade.fd;
}

enum upgrade_event upgrade_step(struct upgrade *u)
{
    eventfd_t n;

    (void)u;
    ck_assert_int_eq(eventfd_read(upgrade.fd, &n), 0);
    upgrade.replaced |= upgrade.event == UPGRADE_REPLACED;
    if (upgrade.event == UPGRADE_TOOK_OVER) {
        notify_set_main(true); /* as the real one */
        upgrade.pending = false;
    }
    return upgrade.event;
}

int upgrade_begin(struct upgrade *u, int64_t timeout_ns, unsigned max_old)
{
    (void)u;
    upgrade.begun++;
    upgrade.timeout_ns = timeout_ns;
    upgrade.max_old = max_old;
    return 0;
}

void upgrade_cancel(struct upgrade *u, const char *why)
{
    (void)u;
    (void)why;
    upgrade.cancelled++;
}

bool upgrade_is_starting(const struct upgrade *u)
{
    (void)u;
    return upgrade.starting;
}

bool upgrade_is_pending(const struct upgrade *u)
{
    (void)u;
    return upgrade.pending;
}

bool upgrade_is_replaced(const struct upgrade *u)
{
    (void)u;
    return upgrade.replaced;
}

unsigned upgrade_old(const struct upgrade *u)
{
    (void)u;
    return upgrade.old;
}

void upgrade_tell_old(struct upgrade *u, const char *word)
{
    (void)u;
    (void)word;
}

void upgrade_report(struct upgrade *u, const char *word)
{
    (void)u;
    if (upgrade.replaced)
        upgrade.last_report = word;
}

static struct run *run;
/* ---- the admin interface ---- */

static struct {
    unsigned started, left, stopped, steps;
    bool draining, closed;
    const char *obstacle; /* of the last step */
} admin;

int admin_start(struct admin *a)
{
    (void)a;
    admin.started++;
    return 0;
}

void admin_set_state(struct admin *a, enum admin_state state)
{
    (void)a;
    admin.draining = state == ADMIN_DRAINING;
}

void admin_leave(struct admin *a)
{
    (void)a;
    admin.left++;
}

int admin_stop(struct admin *a)
{
    (void)a;
    ck_assert(admin.closed); /* no action is out */
    admin.stopped++;
    return 0;
}

int admin_desk_fd(const struct admin_desk *desk)
{
    (void)desk;
    return -1;
}

void admin_desk_step(struct admin_desk *desk, const char *obstacle)
{
    (void)desk;
    admin.steps++;
    admin.obstacle = obstacle;
}

void admin_desk_close(struct admin_desk *desk)
{
    (void)desk;
    admin.closed = true;
}

static struct run_conf conf;
static bool alone;

static void setup(void)
{
    manager_open();
    log_lines_capture(LOG_LEVEL_NOTICE);
    memset(&server, 0, sizeof(server));
    server.watch_interval_ns = 2 * NS_PER_MS;
    memset(&changes, 0, sizeof(changes));
    changes.due_at_ns = CLOCK_NEVER;
    changes.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    ck_assert_int_ge(changes.fd, 0);
    memset(&upgrade, 0, sizeof(upgrade));
    memset(&admin, 0, sizeof(admin));
    upgrade.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    ck_assert_int_ge(upgrade.fd, 0);
    ck_assert_int_eq(run_create(&run), 0);
    server.events = run_events(run);
}

static void teardown(void)
{
    run_destroy(run);
    close(changes.fd);
    close(upgrade.fd);
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
    server.on_watch = NULL;
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

static void reload_and_end(void)
{
    send_signal(SIGHUP);
    server.on_watch = last_session_ends;
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

static void take_step(enum upgrade_event event)
{
    upgrade.event = event;
    ck_assert_int_eq(eventfd_write(upgrade.fd, 1), 0);
}

TEST(signals, sigusr2_begins_an_upgrade_as_configured)
{
    server.on_drain = last_session_ends;
    changes.running.process.upgrade_timeout_ns = 5;
    changes.running.process.max_old_processes = 6;
    send_signal(SIGUSR2);
    send_signal(SIGTERM); /* read later: a higher number */
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    ck_assert_uint_eq(upgrade.begun, 1);
    ck_assert_int_eq(upgrade.timeout_ns, 5);
    ck_assert_uint_eq(upgrade.max_old, 6);
    ck_assert_uint_eq(upgrade.cancelled, 2); /* before the drain, and before the end */
}

TEST(signals, an_upgrade_while_a_reload_is_open_is_refused)
{
    server.on_drain = last_session_ends;
    changes.open = true;
    send_signal(SIGUSR2);
    send_signal(SIGTERM);
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    ck_assert_uint_eq(upgrade.begun, 0);
    EXPECT_LOG_LINES("upgrade: refused: a reload is under way", 1);
}

static void upgrade_and_end(void)
{
    send_signal(SIGUSR2);
    server.on_watch = last_session_ends;
}

TEST(signals, an_upgrade_while_draining_is_refused)
{
    server.on_drain = upgrade_and_end;
    send_signal(SIGTERM);
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    ck_assert_uint_eq(upgrade.begun, 0);
    EXPECT_LOG_LINES("upgrade: refused: draining", 1);
}

TEST(signals, a_reload_during_an_upgrade_is_refused)
{
    server.on_drain = last_session_ends;
    upgrade.starting = true;
    send_signal(SIGHUP);
    send_signal(SIGTERM);
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    ck_assert_uint_eq(changes.begun, 0);
    EXPECT_LOG_LINES("reload: refused: an upgrade is under way", 1);
}

TEST(signals, a_replaced_process_leaves_its_sockets_and_reports_its_end)
{
    server.on_leave = last_session_ends;
    take_step(UPGRADE_REPLACED);
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    ck_assert_uint_eq(server.leaves, 1);
    ck_assert_uint_eq(server.drains, 0);
    ck_assert_uint_eq(server.stops, 1);
    ck_assert_str_eq(upgrade.last_report, "end");
    ck_assert(!told("STOPPING=1"));
    ck_assert_uint_eq(admin.left, 1);
    ck_assert(admin.draining);
    ck_assert_str_eq(admin.obstacle, "draining");
}

static void terminate_replaced(void)
{
    if (server.watches == 2)
        send_signal(SIGTERM);
    if (server.watches == 4)
        last_session_ends();
}

TEST(signals, the_first_sigterm_to_a_replaced_process_lets_its_sessions_finish)
{
    server.on_watch = terminate_replaced;
    take_step(UPGRADE_REPLACED);
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    EXPECT_LOG_LINES("SIGTERM from", 1);
    EXPECT_LOG_LINES("all sessions have finished", 1);
}

TEST(signals, replaced_process_stops_when_told)
{
    upgrade.replaced = true;
    take_step(UPGRADE_TOLD_STOP);
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    ck_assert_uint_eq(server.stops, 1);
    EXPECT_LOG_LINES("stopped at once", 1);
}

static void take_over_and_end(void)
{
    if (server.watches == 1)
        ck_assert_uint_eq(admin.started, 0); /* not before */
    if (server.watches == 2)
        take_step(UPGRADE_TOOK_OVER);
    if (server.watches == 4)
        send_signal(SIGINT);
}

TEST(signals, a_process_that_takes_over_keeps_the_sockets_and_tells_systemd)
{
    notify_set_main(false);
    server.on_watch = take_over_and_end;
    upgrade.pending = true;
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    ck_assert_uint_eq(server.keeps, 1);
    ck_assert_uint_eq(admin.started, 1);
    ck_assert_uint_eq(admin.stopped, 1);
    ck_assert_uint_eq(changes.notified, 1);
    ck_assert(told("STOPPING=1"));
}

static void end_after_take_over(void)
{
    if (server.keeps > 0 || server.watches > 50)
        last_session_ends();
}

static void take_over_while_draining(void)
{
    upgrade.pending = false;
    take_step(UPGRADE_TOOK_OVER);
    server.on_leave = NULL;
    server.on_watch = end_after_take_over;
}

TEST(signals, process_that_takes_over_while_draining_is_not_ready)
{
    notify_set_main(false);
    server.on_leave = take_over_while_draining;
    upgrade.pending = true;
    send_signal(SIGTERM);
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    ck_assert_uint_eq(server.keeps, 1);
    ck_assert_uint_eq(changes.notified, 0);
    ck_assert(told("STOPPING=1"));
}

TEST(signals, process_stopped_before_its_take_over_leaves_the_sockets_to_the_other)
{
    server.on_leave = last_session_ends;
    upgrade.pending = true;
    send_signal(SIGTERM);
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    ck_assert_uint_eq(server.drains, 0);
    ck_assert_uint_ge(server.leaves, 1);
}

static void old_ones_end(void)
{
    switch (server.watches) {
    case 3: ck_assert_uint_eq(server.stops, 0); break;
    case 4:
        upgrade.old = 1;
        take_step(UPGRADE_OLD_ENDED);
        break;
    case 6:
        ck_assert_uint_eq(server.stops, 0);
        upgrade.old = 0;
        take_step(UPGRADE_OLD_ENDED);
        break;
    default: break;
    }
}

static void own_sessions_end(void)
{
    server.events.drained(server.events.cookie);
}

TEST(signals, process_ends_after_the_last_process_that_it_replaced)
{
    upgrade.old = 2;
    server.on_drain = own_sessions_end;
    server.on_watch = old_ones_end;
    send_signal(SIGTERM);
    ck_assert_int_eq(run_until_stopped(run, &conf, &alone), EXIT_CODE_OK);
    ck_assert_uint_eq(server.watches, 6);
    ck_assert_uint_eq(server.stops, 1);
    EXPECT_LOG_LINES("replaced processes that still drain: 2", 1);
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
