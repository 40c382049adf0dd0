/* server/checks: what becomes of checks and flags when the configuration changes. */
#include <errno.h>
#include <string.h>

#include "check/checker.h"
#include "server/checks.h"
#include "support/checked.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/suite.h"
#include "support/until.h"
#include "upstream/upstream.h"
#include "upstream/upstream_change.h"

GROUP(checks, checked_setup, checked_teardown);

static void do_cancel(void *arg)
{
    ck_assert_int_eq(checked_prepare(arg), 0);
    checks_cancel(checked.change);
}

static void do_remove_all(void *arg)
{
    (void)arg;
    ck_assert_int_eq(checks_prepare(checked.checks, NULL, 0, 0, &checked.change), 0);
    checks_commit(checked.change);
}

TEST(checks, servers_that_are_no_longer_checked_count_as_up)
{
    checked_start();
    UNTIL(checked_flags_of(1) == ENDPOINT_DOWN);
    checked.other_conf = checked.conf;
    checked.other_conf.checks.kind = UPSTREAM_CHECK_OFF;
    checked_change_to(&checked.other_conf);
    ck_assert_uint_eq(checked_flags_of(1), 0);
    ck_assert(!checker_has(checked_server_at(1)->target));
    ck_assert_ptr_null(checked.upstream->membership.watch.came);
    checked_change_to(&checked.conf);
    UNTIL(checked_flags_of(1) == ENDPOINT_DOWN);
}

TEST(checks, servers_of_an_upstream_that_is_removed_keep_their_flags)
{
    checked_start();
    UNTIL(checked_flags_of(1) == ENDPOINT_DOWN);
    ck_assert_int_eq(listen(checked.fds[1], 16), 0);
    loop_runner_call(checked.control, do_remove_all, NULL);
    ck_assert(!checker_has(checked_server_at(1)->target));
    PAUSE_MS(50);
    ck_assert_uint_eq(checked_flags_of(1), ENDPOINT_DOWN);
}

TEST(checks, changed_configuration_leaves_servers_up_or_down)
{
    checked_start();
    UNTIL(checked_flags_of(1) == ENDPOINT_DOWN);
    checked.other_conf = checked.conf;
    checked.other_conf.checks.health.initial = HEALTH_STARTS_DOWN;
    checked.other_conf.checks.health.rise = checked.other_conf.checks.health.fall = 1000000;
    checked_change_to(&checked.other_conf);
    ck_assert_uint_eq(checked_flags_of(0), 0);
    ck_assert_int_eq(listen(checked.fds[1], 16), 0);
    PAUSE_MS(50);
    ck_assert_uint_eq(checked_flags_of(0), 0);
    ck_assert_uint_eq(checked_flags_of(1), ENDPOINT_DOWN);
    checked.other_conf.checks.health.rise = 1;
    checked_change_to(&checked.other_conf);
    UNTIL(checked_flags_of(1) == 0);
}

static struct upstream_server_conf other_servers[SERVERS];

/* The upstream gets `other_conf` with `other_servers`; its checks stay as they are. */
static void do_use_others(void *arg)
{
    struct upstream_change *use;

    (void)arg;
    checked.other_conf.servers = other_servers;
    ck_assert_int_eq(upstream_change_prepare(&use, checked.upstream, &checked.other_conf), 0);
    upstream_change_commit(use);
}

static void start_with_others(void)
{
    checked_start();
    UNTIL(checked_flags_of(1) == ENDPOINT_DOWN);
    checked.other_conf = checked.conf;
    memcpy(other_servers, checked.servers, sizeof(checked.servers));
}

TEST(checks, server_can_be_disabled_and_enabled)
{
    start_with_others();
    other_servers[1].disabled = true;
    loop_runner_call(checked.control, do_use_others, NULL);
    ck_assert(!checker_has(checked_server_at(1)->target));
    ck_assert_uint_eq(checked_flags_of(1), 0);
    other_servers[1].disabled = false;
    loop_runner_call(checked.control, do_use_others, NULL);
    UNTIL(checked_flags_of(1) == ENDPOINT_DOWN);
}

/* 0: address; 1: port. The line before is gone, with its address. */
TEST_EACH(checks, server_can_be_checked_at_another_address_or_port, 2)
{
    start_with_others();
    if (_i == 0)
        other_servers[1].check_address = &checked.addresses[0];
    else
        other_servers[1].check_port = address_port(&checked.addresses[0]);
    loop_runner_call(checked.control, do_use_others, NULL);
    UNTIL(checked_flags_of(1) == 0);
    other_servers[1].check_address = NULL;
    other_servers[1].check_port = 0;
    loop_runner_call(checked.control, do_use_others, NULL);
    UNTIL(checked_flags_of(1) == ENDPOINT_DOWN);
}

TEST(checks, server_added_again_by_a_reload_is_checked)
{
    start_with_others();
    checked.other_conf.n_servers = 1;
    loop_runner_call(checked.control, do_use_others, NULL);
    PAUSE_MS(50);
    checked.other_conf.n_servers = 2;
    loop_runner_call(checked.control, do_use_others, NULL);
    ck_assert(checker_has(checked_server_at(1)->target));
    UNTIL(checked_flags_of(1) == ENDPOINT_DOWN);
}

TEST(checks, cancelled_change_leaves_no_trace)
{
    struct upstream_next list = {NULL, &checked.other_conf};
    unsigned open;

    checked.conf.checks.kind = UPSTREAM_CHECK_OFF;
    checked_start();
    checked.other_conf = checked.conf;
    checked.other_conf.checks.kind = UPSTREAM_CHECK_TCP;
    list.upstream = checked.upstream;
    open = process_descriptors();
    loop_runner_call(checked.control, do_cancel, &list);
    ck_assert_uint_le(process_descriptors(), open + 1); /* of the loop, for checks */
    ck_assert(!checker_has(checked_server_at(0)->target));
    ck_assert_ptr_null(checked.upstream->membership.watch.came);
    checked_change_to(&checked.other_conf);
    UNTIL(checked_flags_of(1) == ENDPOINT_DOWN);
    loop_runner_call(checked.control, do_cancel, &list);
    ck_assert(checker_has(checked_server_at(0)->target));
}

static void do_fail(void *arg)
{
    /* What the first group needs stays for later ones; then the change, a group of two, rules. */
    ck_assert_uint_ge(fault_each_allocation(checked_prepare, arg), 5);
    checks_cancel(checked.change);
    ck_assert_uint_ge(fault_each_allocation(checked_prepare, arg), 4);
    checks_cancel(checked.change);
}

TEST(checks, failed_allocation_changes_nothing)
{
    struct upstream_next list = {NULL, &checked.other_conf};

    checked.conf.checks.kind = UPSTREAM_CHECK_OFF;
    checked_start();
    checked.other_conf = checked.conf;
    checked.other_conf.checks.kind = UPSTREAM_CHECK_TCP;
    list.upstream = checked.upstream;
    loop_runner_call(checked.control, do_fail, &list);
    ck_assert(!checker_has(checked_server_at(0)->target));
    ck_assert_uint_eq(checked_flags_of(1), 0);
    checked_change_to(&checked.other_conf);
    UNTIL(checked_flags_of(1) == ENDPOINT_DOWN);
}

static void do_prepare_wrong(void *arg)
{
    ck_assert_int_eq(checked_prepare(arg), -EINVAL);
}

TEST(checks, invalid_check_settings_are_refused_and_logged)
{
    struct upstream_next list = {NULL, &checked.other_conf};

    checked_start();
    checked.other_conf = checked.conf;
    checked.other_conf.checks.check.timeout_ns = 0;
    list.upstream = checked.upstream;
    loop_runner_call(checked.control, do_prepare_wrong, &list);
    EXPECT_LOG_LINES("upstream back: servers cannot be checked: Invalid", 1);
    UNTIL(checked_flags_of(1) == ENDPOINT_DOWN);
}

/* ---- at a time ---- */

TEST(checks, at_most_one_check_per_server_runs_at_a_time)
{
    checked_create();
    ck_assert_uint_eq(checks_at_a_time(&checked.next, 1, 100), 2);
    ck_assert_uint_eq(checks_at_a_time(&checked.next, 1, 1), 1);
    ck_assert_uint_eq(checks_at_a_time(&checked.next, 1, 0), 1);
    checked.servers[0].disabled = true; /* may be enabled at run time */
    ck_assert_uint_eq(checks_at_a_time(&checked.next, 1, 100), 2);
    checked.servers[1].names = UPSTREAM_NAME_EACH;
    ck_assert_uint_eq(checks_at_a_time(&checked.next, 1, 100), CHECKS_OF_A_NAME + 1);
    checked.servers[1].disabled = true;
    ck_assert_uint_eq(checks_at_a_time(&checked.next, 1, 100), 1);
    checked.servers[0].names = UPSTREAM_NAME_ONE;
    ck_assert_uint_eq(checks_at_a_time(&checked.next, 1, 100), 0);
    checked.conf.checks.kind = UPSTREAM_CHECK_OFF;
    ck_assert_uint_eq(checks_at_a_time(&checked.next, 1, 100), 0);
}
