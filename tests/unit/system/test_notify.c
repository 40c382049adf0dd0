/* system/notify: what arrives at the socket of a service manager. */
#include <check.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "system/notify.h"
#include "support/log_lines.h"
#include "support/manager.h"
#include "support/suite.h"

GROUP(notify, manager_open, manager_close);

TEST(notify, ready_is_sent_with_the_process_and_a_status)
{
    char expected[128];

    notify_ready("Accepting, listen addresses: %d", 3);
    snprintf(expected, sizeof(expected),
             "READY=1\nMAINPID=%ld\nSTATUS=Accepting, listen addresses: 3\n", (long)getpid());
    ck_assert_str_eq(manager_received(), expected);
}

TEST(notify, reload_is_sent_with_its_time_and_a_status)
{
    int64_t before_us = clock_now_ns() / NS_PER_US, at_us;
    char rest[64];

    notify_reloading("Reloading %s", "it");
    ck_assert_int_eq(sscanf(manager_received(), "RELOADING=1\nMONOTONIC_USEC=%" SCNd64 "\n%63[^*]",
                            &at_us, rest),
                     2);
    ck_assert_int_ge(at_us, before_us);
    ck_assert_int_le(at_us, clock_now_ns() / NS_PER_US);
    ck_assert_str_eq(rest, "STATUS=Reloading it\n");
}

TEST(notify, stopping_is_sent_with_a_status)
{
    notify_stopping("Draining, sessions left: %u", 2u);
    ck_assert_str_eq(manager_received(), "STOPPING=1\nSTATUS=Draining, sessions left: 2\n");
}

TEST(notify, a_status_alone_changes_no_state)
{
    notify_status("Draining, sessions left: %u", 1u);
    ck_assert_str_eq(manager_received(), "STATUS=Draining, sessions left: 1\n");
}

TEST(notify, extension_is_sent_in_microseconds)
{
    notify_extend(20 * NS_PER_S);
    ck_assert_str_eq(manager_received(), "EXTEND_TIMEOUT_USEC=20000000\n");
}

TEST(notify, stored_descriptor_is_sent_with_its_name)
{
    ck_assert_int_eq(notify_store("web", 0), 0);
    ck_assert_str_eq(manager_received(), "FDSTORE=1\nFDNAME=web\n");
    notify_unstore("web");
    ck_assert_str_eq(manager_received(), "FDSTOREREMOVE=1\nFDNAME=web\n");
    manager_close();
    ck_assert_int_eq(notify_store("web", 0), -ECONNREFUSED);
}

TEST(notify, long_status_is_truncated)
{
    char status[1024];
    const char *message;

    memset(status, 'x', sizeof(status) - 1);
    status[sizeof(status) - 1] = '\0';
    notify_status("%s", status);
    message = manager_received();
    ck_assert_uint_gt(strlen(message), 200);
    ck_assert_str_eq(message + strlen(message) - 2, "x\n");
}

TEST(notify, watchdog_interval_is_half_the_period)
{
    char pid[32];

    snprintf(pid, sizeof(pid), "%ld", (long)getpid());
    manager_watch("30000000", NULL);
    ck_assert_int_eq(notify_watchdog_interval_ns(), 15 * NS_PER_S);
    manager_watch("30000000", pid);
    ck_assert_int_eq(notify_watchdog_interval_ns(), 15 * NS_PER_S);
    notify_watchdog();
    ck_assert_str_eq(manager_received(), "WATCHDOG=1");
}

TEST(notify, watchdog_of_another_process_or_none_is_never_fed)
{
    char pid[32];

    ck_assert_int_eq(notify_watchdog_interval_ns(), CLOCK_NEVER);
    snprintf(pid, sizeof(pid), "%ld", (long)getppid());
    manager_watch("30000000", pid);
    ck_assert_int_eq(notify_watchdog_interval_ns(), CLOCK_NEVER);
}

static const char *const bad_periods[] = {"", "0", "-1", "30s", "18446744073709551615"};

TEST_EACH(notify, invalid_watchdog_period_is_reported_and_never_fed, ARRAY_LEN(bad_periods))
{
    log_lines_capture(LOG_LEVEL_WARNING);
    manager_watch(bad_periods[_i], NULL);
    ck_assert_int_eq(notify_watchdog_interval_ns(), CLOCK_NEVER);
    EXPECT_LOG_LINES("systemd's watchdog is not fed: WATCHDOG_USEC ", 1);
}

TEST(notify, watchdog_period_beyond_the_clock_is_never)
{
    manager_watch("18446744073709551614", NULL);
    ck_assert_int_eq(notify_watchdog_interval_ns(), CLOCK_NEVER);
}

TEST(notify, without_a_service_manager_nothing_is_sent)
{
    ck_assert_int_eq(unsetenv("NOTIFY_SOCKET"), 0);
    notify_ready("ready");
    notify_reloading("reloading");
    notify_stopping("stopping");
    notify_status("status");
    notify_extend(NS_PER_S);
    notify_watchdog();
    ck_assert_str_eq(manager_received(), "");
}

TEST(notify, lost_service_manager_is_no_error)
{
    manager_close();
    notify_ready("ready");
    notify_status("status");
}

TEST(notify, process_that_named_another_main_process_sends_nothing_more)
{
    ck_assert_int_eq(notify_hand_over(4711), 0);
    ck_assert_str_eq(manager_received(), "WATCHDOG=1\nMAINPID=4711\n");
    notify_status("Draining");
    notify_watchdog();
    ck_assert_int_eq(notify_store("name", 0), 0);
    ck_assert_str_eq(manager_received(), "");
    notify_set_main(true);
    notify_watchdog();
    ck_assert_str_eq(manager_received(), "WATCHDOG=1");
}

/* The first message behind those of manager_fill(). */
static const char *behind_the_filling(void)
{
    const char *message;

    do
        message = manager_received();
    while (strcmp(message, "x") == 0);
    return message;
}

static void retry_until_sent(void)
{
    while (notify_retry_at_ns() != CLOCK_NEVER) {
        usleep(1000);
        notify_retry();
    }
}

TEST(notify, full_socket_of_the_manager_does_not_block_and_the_last_of_each_kind_is_sent)
{
    log_lines_capture(LOG_LEVEL_NOTICE);
    manager_fill();
    ck_assert_int_eq(notify_retry_at_ns(), CLOCK_NEVER);
    notify_ready("first");
    for (int i = 0; i < 2000; i++) {
        notify_reloading("reload %d", i);
        notify_ready("ready %d", i);
        notify_watchdog();
    }
    EXPECT_LOG_LINES("systemd takes no messages from NOTIFY_SOCKET now", 1);
    ck_assert_int_lt(notify_retry_at_ns(), CLOCK_NEVER);
    notify_retry();
    ck_assert_int_lt(notify_retry_at_ns(), CLOCK_NEVER);
    ck_assert_str_eq(behind_the_filling(), "");
    retry_until_sent();
    ck_assert_ptr_nonnull(strstr(manager_received(), "STATUS=reload 1999\n"));
    ck_assert_ptr_nonnull(strstr(manager_received(), "STATUS=ready 1999\n"));
    ck_assert_str_eq(manager_received(), "WATCHDOG=1");
    ck_assert_str_eq(manager_received(), "");
    EXPECT_LOG_LINES("systemd takes messages from NOTIFY_SOCKET again", 1);
}

TEST(notify, pending_stores_keep_a_copy_of_the_descriptor_until_removed)
{
    int ends[2], later[2];

    ck_assert_int_eq(pipe(ends), 0);
    manager_fill();
    ck_assert_int_eq(notify_store("web", ends[0]), 0);
    ck_assert_int_eq(notify_store("web", ends[0]), 0);
    ck_assert_int_eq(notify_store("gone", ends[0]), 0);
    notify_unstore("gone");
    close(ends[0]);
    ck_assert_str_eq(behind_the_filling(), "");
    retry_until_sent();
    ck_assert_str_eq(manager_received(), "FDSTORE=1\nFDNAME=web\n");
    ck_assert_str_eq(manager_received(), "FDSTORE=1\nFDNAME=web\n");
    ck_assert_str_eq(manager_received(), "FDSTOREREMOVE=1\nFDNAME=gone\n");
    ck_assert_str_eq(manager_received(), "");
    ck_assert_int_eq(pipe(later), 0);
    ck_assert_int_eq(later[1], ends[1] + 1); /* no copy is left */
}

TEST(notify, hand_over_that_the_manager_does_not_take_changes_nothing)
{
    manager_fill();
    notify_status("waits");
    ck_assert_int_eq(notify_hand_over(4711), -EAGAIN);
    ck_assert_str_eq(behind_the_filling(), "");
    ck_assert_int_eq(notify_hand_over(4711), 0);
    ck_assert_str_eq(manager_received(), "STATUS=waits\n");
    ck_assert_str_eq(manager_received(), "WATCHDOG=1\nMAINPID=4711\n");
    ck_assert_int_eq(notify_retry_at_ns(), CLOCK_NEVER);
}

TEST(notify, process_that_is_no_longer_the_main_one_drops_pending_messages)
{
    manager_fill();
    notify_status("waits");
    notify_set_main(false);
    ck_assert_int_eq(notify_retry_at_ns(), CLOCK_NEVER);
    notify_status("of nobody");
    ck_assert_int_eq(notify_retry_at_ns(), CLOCK_NEVER);
}
