/* daemon/run: upgrades, on both sides, and processes that were replaced. */
#include <check.h>
#include <signal.h>
#include <sys/eventfd.h>

#include "system/notify.h"
#include "daemon/run.h"
#include "upgrade/upgrade.h"
#include "support/log_lines.h"
#include "support/suite.h"
#include "unit/daemon/run_stubs.h"

GROUP(signals, setup, teardown);

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
