/* names/resolver: names that another configuration has no more, or has otherwise. */
#include <errno.h>

#include "engine/executor.h"
#include "names/resolver_internal.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/renamed.h"
#include "support/suite.h"
#include "support/until.h"

/* Another configuration for upstream ${i}, as the one before; prepare() uses it. */
static struct version *other(unsigned i)
{
    struct version *v = &renamed.pool[renamed.n_pool++];

    ck_assert_uint_le(renamed.n_pool, ARRAY_LEN(renamed.pool));
    *v = *renamed.now[i];
    v->conf.servers = v->lines;
    renamed.now[i] = v;
    renamed.is_other[i] = true;
    return v;
}

static unsigned port_of(unsigned i)
{
    struct look l = {.upstream = i};

    loop_runner_call(renamed.control, renamed_do_look, &l);
    return l.port;
}

GROUP(change, renamed_setup, renamed_teardown);

/* ---- names that go ---- */

TEST(change, removed_name_is_not_looked_up_again)
{
    renamed.now[0]->conf.resolve_interval_ns = 5 * NS_PER_MS;
    renamed_start();
    UNTIL(atomic_load(&renamed.lookups[0]) >= 3);
    renamed_prepare(2);
    renamed_until_ready(1);
    renamed_commit();
    PAUSE_MS(20); /* one under way */
    atomic_store(&renamed.lookups[0], 0);
    PAUSE_MS(50);
    ck_assert_uint_eq(atomic_load(&renamed.lookups[0]), 0);
    ck_assert_uint_eq(renamed_known(1), 1);
}

static void do_destroy(void *arg)
{
    unsigned *i = arg;

    upstream_destroy(renamed.upstreams[*i]);
    renamed.upstreams[*i] = NULL;
}

static void do_count(void *arg)
{
    unsigned *n = arg;

    *n = 0;
    list_for_each (node, &renamed.resolver->removed)
        ++*n;
}

/* Names that are gone and still being looked up. */
static unsigned removed(void)
{
    unsigned n;

    loop_runner_call(renamed.control, do_count, &n);
    return n;
}

TEST(change, a_lookup_under_way_outlives_its_upstream)
{
    unsigned gone = 0;

    renamed.now[0]->conf.resolve_interval_ns = 5 * NS_PER_MS;
    renamed_start();
    atomic_store(&renamed.answers[0], SILENT);
    UNTIL(atomic_load(&renamed.running) == 1);
    renamed_prepare(2);
    renamed_until_ready(1);
    renamed_commit();
    ck_assert_uint_eq(removed(), 1);
    loop_runner_call(renamed.control, do_destroy, &gone);
    atomic_store(&renamed.answers[0], 1);
    UNTIL(removed() == 0);
}

TEST(change, cancelled_change_can_be_tried_again_during_its_lookups)
{
    renamed_start();
    atomic_store(&renamed.answers[1], SILENT);
    renamed_prepare(1 | 2);
    UNTIL(atomic_load(&renamed.running) == 1);
    renamed_cancel();
    ck_assert_uint_eq(removed(), 1);
    renamed_prepare(1 | 2); /* another lookup of the same name */
    UNTIL(atomic_load(&renamed.running) == 2);
    renamed_cancel();
    ck_assert_uint_eq(removed(), 2);
    atomic_store(&renamed.answers[1], 1);
    UNTIL(removed() == 0);
    PAUSE_MS(20);
    ck_assert_uint_eq(atomic_load(&renamed.n_ready), 0);
    ck_assert_uint_eq(renamed_known(1), 0);
}

TEST(change, change_cancelled_when_ready_changes_nothing)
{
    renamed_start();
    renamed_prepare(2);
    renamed_until_ready(1);
    renamed_cancel();
    ck_assert_uint_eq(renamed_known(1), 0);
    ck_assert_uint_eq(removed(), 0);
    ck_assert_uint_eq(renamed_known(0), 1);
    renamed_prepare(1);
    renamed_until_ready(2);
    renamed_commit();
    ck_assert_uint_eq(atomic_load(&renamed.lookups[0]), 1);
}

/* ---- names that stay ---- */

static void change_interval(int64_t interval_ns)
{
    unsigned n = atomic_load(&renamed.n_ready);

    other(0)->conf.resolve_interval_ns = interval_ns;
    renamed_prepare(1);
    renamed_until_ready(n + 1);
    renamed_commit();
}

TEST(change, changed_interval_applies_at_once)
{
    unsigned before;

    renamed.now[0]->conf.resolve_interval_ns = LATER;
    renamed_start();
    change_interval(LATER);
    PAUSE_MS(20);
    ck_assert_uint_eq(atomic_load(&renamed.lookups[0]), 1);
    change_interval(5 * NS_PER_MS);
    UNTIL(atomic_load(&renamed.lookups[0]) >= 3);
    change_interval(0);
    before = atomic_load(&renamed.lookups[0]);
    PAUSE_MS(70);
    ck_assert_uint_le(atomic_load(&renamed.lookups[0]), before + 1); /* one was under way */
    change_interval(5 * NS_PER_MS);
    UNTIL(atomic_load(&renamed.lookups[0]) >= before + 4);
}

static void do_weigh(void *arg)
{
    const struct server_set *set = membership_now(&renamed.upstreams[0]->membership);
    unsigned *weight = arg;

    *weight = set->n == 1 ? atomic_load(&set->servers[0]->endpoint.weight) : 0;
}

TEST(change, unchanged_name_gets_the_new_settings_of_its_line)
{
    unsigned weight;

    renamed_start();
    other(0)->lines[0].weight = 7;
    renamed.now[0]->conf.resolve_interval_ns = 5 * NS_PER_MS;
    renamed_prepare(1);
    renamed_until_ready(1);
    ck_assert_uint_eq(atomic_load(&renamed.lookups[0]), 1);
    renamed_commit();
    atomic_store(&renamed.shift, 5000);
    UNTIL(port_of(0) == 6000);
    loop_runner_call(renamed.control, do_weigh, &weight);
    ck_assert_uint_eq(weight, 7);
}

TEST(change, line_with_another_name_is_looked_up_as_a_new_name)
{
    renamed.now[0]->conf.resolve_interval_ns = 5 * NS_PER_MS;
    renamed_start();
    other(0)->lines[0].address_text = "3";
    renamed_prepare(1);
    renamed_until_ready(1);
    ck_assert_uint_ge(atomic_load(&renamed.lookups[3]), 1);
    ck_assert_uint_eq(port_of(0), 1000);
    renamed_commit();
    ck_assert_uint_eq(port_of(0), 1300);
    ck_assert_uint_eq(renamed_known(0), 1);
    PAUSE_MS(20);
    atomic_store(&renamed.lookups[0], 0);
    atomic_store(&renamed.answers[3], 2);
    UNTIL(renamed_known(0) == 2);
    ck_assert_uint_eq(atomic_load(&renamed.lookups[0]), 0);
}

/* 0: the other configuration is cancelled; 1: used */
TEST_EACH(change, answers_that_arrive_during_a_change_are_applied_after_it, 2)
{
    renamed.now[0]->conf.resolve_interval_ns = 5 * NS_PER_MS;
    renamed_start();
    (void)other(0);
    renamed_prepare(1);
    renamed_until_ready(1);
    atomic_store(&renamed.shift, 5000);
    PAUSE_MS(50);
    ck_assert_uint_eq(port_of(0), 1000);
    if (_i == 0)
        renamed_cancel();
    else
        renamed_commit();
    UNTIL(port_of(0) == 6000);
    ck_assert_uint_eq(log_lines_with("cannot look up"), 0);
}

TEST(change, disabled_line_removes_its_name)
{
    renamed_start();
    other(0)->lines[0].disabled = true;
    renamed_prepare(1);
    renamed_until_ready(1);
    renamed_commit();
    ck_assert_uint_eq(renamed_known(0), 0);
    other(0)->lines[0].disabled = false;
    renamed_prepare(1);
    renamed_until_ready(2);
    ck_assert_uint_eq(atomic_load(&renamed.lookups[0]), 2);
    renamed_commit();
    ck_assert_uint_eq(renamed_known(0), 1);
}

/* ---- proxy loops ---- */

TEST(change, addresses_of_a_new_name_are_compared_with_the_new_listeners)
{
    renamed.listeners[1].port = 1101;
    atomic_store(&renamed.answers[1], 2);
    renamed_start();
    ck_assert_int_eq(renamed_prepare_with(1 | 2, UNTIL_LIMIT_NS, &renamed.listeners[1]), 0);
    renamed_until_ready(1);
    ck_assert_int_gt(atomic_load(&renamed.listeners[0].references), 0);
    renamed_commit();
    ck_assert_int_eq(atomic_load(&renamed.listeners[0].references), 0);
    ck_assert_uint_eq(renamed_known(1), 1);
    EXPECT_LOG_LINES("u1: server s (1): proxy loop: 127.0.0.1:1101 is a listener", 1);
}

TEST(change, address_that_becomes_our_own_listener_is_no_longer_used)
{
    renamed.listeners[1].port = 1001;
    renamed.now[0]->conf.resolve_interval_ns = LATER;
    atomic_store(&renamed.answers[0], 2);
    renamed_start();
    ck_assert_uint_eq(renamed_known(0), 2);
    ck_assert_int_eq(renamed_prepare_with(1, UNTIL_LIMIT_NS, &renamed.listeners[1]), 0);
    renamed_until_ready(1);
    renamed_commit();
    UNTIL(renamed_known(0) == 1);
    ck_assert_uint_eq(atomic_load(&renamed.lookups[0]), 2);
}

/* Prepare other listeners while a lookup with the old ones is under way. */
static void prepare_during_a_lookup(void)
{
    renamed.listeners[1].port = 1001;
    renamed.now[0]->conf.resolve_interval_ns = 200 * NS_PER_MS;
    renamed_start();
    atomic_store(&renamed.answers[0], SILENT);
    UNTIL(atomic_load(&renamed.running) == 1);
    other(0)->conf.resolve_interval_ns = LATER;
    ck_assert_int_eq(renamed_prepare_with(1, UNTIL_LIMIT_NS, &renamed.listeners[1]), 0);
    renamed_until_ready(1);
}

TEST(change, answer_of_a_lookup_begun_before_the_change_is_compared_with_the_new_listeners)
{
    prepare_during_a_lookup();
    renamed_commit();
    atomic_store(&renamed.answers[0], 2); /* was asked with the old listeners */
    UNTIL(atomic_load(&renamed.lookups[0]) == 3);
    UNTIL(log_lines_with("proxy loop: 127.0.0.1:1001 is a listener") == 1);
    UNTIL(renamed_known(0) == 1);
}

TEST(change, answer_held_during_the_change_is_compared_with_the_new_listeners)
{
    prepare_during_a_lookup();
    atomic_store(&renamed.answers[0], 2); /* was asked with the old listeners */
    UNTIL(atomic_load(&renamed.running) == 0);
    PAUSE_MS(20); /* until it has come, for what is tested; the test passes without, too */
    renamed_commit();
    UNTIL(log_lines_with("proxy loop: 127.0.0.1:1001 is a listener") == 1);
    UNTIL(renamed_known(0) == 1);
}

/* ---- what fails ---- */

static void do_fail(void *arg)
{
    /* A change, and each of three names. */
    ck_assert_uint_eq(fault_each_allocation(renamed_try_prepare, arg), 4);
}

/* All threads are busy: only the loop allocates. */
TEST(change, failed_allocation_changes_nothing)
{
    struct wanted w = {
        .bits = 1 | 2 | 4 | 8, .wait_ns = UNTIL_LIMIT_NS, .listeners = &renamed.listeners[0]};

    renamed_start();
    for (unsigned i = 1; i < UPSTREAMS; i++)
        atomic_store(&renamed.answers[i], SILENT);
    renamed_prepare(2 | 4 | 8);
    UNTIL(atomic_load(&renamed.running) == 3);
    renamed_cancel();
    renamed_prepare(2);
    UNTIL(atomic_load(&renamed.running) == THREADS);
    renamed_cancel();
    loop_runner_call(renamed.control, do_fail, &w);
    ck_assert_uint_eq(removed(), 4);
    for (unsigned i = 1; i < UPSTREAMS; i++)
        atomic_store(&renamed.answers[i], 1);
    renamed_until_ready(1);
    renamed_commit();
    ck_assert_uint_eq(renamed_known(3), 1);
}

TEST(change, change_without_a_lookup_thread_is_refused)
{
    renamed_start();
    executor_stop(renamed.executor, 0);
    ck_assert_int_eq(renamed_prepare_with(1 | 2, UNTIL_LIMIT_NS, &renamed.listeners[0]),
                     -ESHUTDOWN);
    EXPECT_LOG_LINES("lookups: cannot start a thread", 1);
}

/* 0: it is waiting; 1: it is ready; 2: some names are gone, with lookups under way */
TEST_EACH(change, control_loop_may_end_in_any_state_of_a_change, 3)
{
    log_lines_capture(LOG_LEVEL_ERROR);
    renamed.now[0]->conf.resolve_interval_ns = _i == 2 ? NS_PER_MS : 0;
    renamed_start();
    atomic_store(&renamed.answers[1], _i == 0 ? SILENT : 1);
    if (_i == 2) {
        atomic_store(&renamed.answers[0], SILENT);
        UNTIL(atomic_load(&renamed.running) == 1);
    }
    renamed_prepare(2);
    if (_i > 0)
        renamed_until_ready(1);
    if (_i == 2)
        renamed_commit();
}
