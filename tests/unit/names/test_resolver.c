/*
 * names/resolver: names are looked up elsewhere, until they are known and from time to time
 * after that.
 */
#include <errno.h>

#include "engine/executor.h"
#include "names/resolver_internal.h"
#include "support/fault.h"
#include "support/log_lines.h"
#include "support/lookups.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

/* ---- the start ---- */

GROUP(resolver, lookups_setup, lookups_teardown);

TEST(resolver, names_are_resolved_when_the_start_returns)
{
    atomic_store(&lookups.answers[1], 3);
    lookups_start(3, UNTIL_LIMIT_NS);
    for (unsigned n = 0; n < 3; n++) {
        ck_assert_uint_eq(lookups_port_of(n, 0), 1000 + 100 * n);
        ck_assert_uint_eq(atomic_load(&lookups.lookups[n]), 1);
    }
    ck_assert_uint_eq(lookups_port_of(1, 2), 1102);
    ck_assert_uint_eq(
        log_lines_with(
            "upstream back: server s1 (1): the name is known: 127.0.0.1:1100 and 2 more"),
        1);
}

TEST(resolver, literal_address_is_not_looked_up)
{
    struct address literal;

    sockets_loopback(&literal, 7);
    lookups.server_confs[1].names = UPSTREAM_LITERAL;
    lookups.server_confs[1].addresses = &literal;
    lookups.server_confs[1].n_addresses = 1;
    lookups_start(3, UNTIL_LIMIT_NS);
    ck_assert_uint_eq(resolver_names(&lookups.upstream_next, 1), 2);
    ck_assert_uint_eq(atomic_load(&lookups.lookups[1]), 0);
    ck_assert_uint_eq(lookups_port_of(1, 0), 7);
    ck_assert_uint_eq(lookups_port_of(2, 0), 1200);
}

TEST(resolver, a_disabled_name_is_not_looked_up)
{
    lookups.upstream_conf.resolve_required = true;
    for (unsigned i = 0; i < 3; i++)
        lookups.server_confs[i].disabled = true;
    lookups.server_confs[0].names = UPSTREAM_NAME_EACH;
    lookups.server_confs[2].names = UPSTREAM_SERVICE;
    for (unsigned i = 0; i < 3; i++)
        atomic_store(&lookups.answers[i], -ENOENT);
    lookups_start(4, UNTIL_LIMIT_NS);
    ck_assert_uint_eq(resolver_names(&lookups.upstream_next, 1), 1);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(atomic_load(&lookups.lookups[i]), 0);
    ck_assert_uint_eq(lookups_port_of(3, 0), 1300);
    ck_assert_uint_eq(log_lines_with("cannot look up the name"), 0);
}

TEST(resolver, without_names_no_executor_thread_is_started)
{
    struct address literal;

    sockets_loopback(&literal, 7);
    lookups.server_confs[0].names = UPSTREAM_LITERAL;
    lookups.server_confs[0].addresses = &literal;
    lookups.server_confs[0].n_addresses = 1;
    lookups_start(1, UNTIL_LIMIT_NS);
    ck_assert_uint_eq(process_loops(), 1); /* the control loop */
}

TEST(resolver, names_are_looked_up_at_the_same_time)
{
    for (unsigned n = 0; n < 4; n++)
        atomic_store(&lookups.answers[n], SILENT);
    lookups_start(4, 0);
    UNTIL(atomic_load(&lookups.most_running) == 4);
    for (unsigned n = 0; n < 4; n++)
        atomic_store(&lookups.answers[n], 1);
    UNTIL(lookups_is_known(0) && lookups_is_known(1) && lookups_is_known(2) && lookups_is_known(3));
}

TEST(resolver, names_beyond_the_executors_queue_are_all_looked_up)
{
    lookups_create(NAMES, 2);
    ck_assert_int_eq(lookups_try_start(UNTIL_LIMIT_NS), 0);
    for (unsigned n = 0; n < NAMES; n++)
        ck_assert(lookups_is_known(n));
    ck_assert_uint_le(atomic_load(&lookups.most_running), 2);
}

TEST(resolver, failed_lookup_is_not_waited_for_until_the_deadline)
{
    int64_t began_at_ns = clock_now_ns();

    atomic_store(&lookups.answers[0], -ENOENT);
    lookups_start(2, UNTIL_LIMIT_NS);
    ck_assert_int_lt(since_ms(began_at_ns), UNTIL_LIMIT_NS / NS_PER_MS);
    ck_assert(!lookups_is_known(0));
    ck_assert(lookups_is_known(1));
}

TEST(resolver, all_silent_names_have_one_deadline)
{
    int64_t began_at_ns = clock_now_ns();

    for (unsigned n = 0; n < 20; n++)
        atomic_store(&lookups.answers[n], SILENT);
    lookups_start(20, 300 * NS_PER_MS);
    ck_assert_int_ge(since_ms(began_at_ns), 300);
    ck_assert_int_lt(since_ms(began_at_ns), 20 * 300);
    EXPECT_LOG_LINES("the name is still being looked up", 20);
    for (unsigned n = 0; n < 20; n++)
        atomic_store(&lookups.answers[n], 1);
}

/* ---- afterwards ---- */

TEST(resolver, late_answer_is_used)
{
    log_lines_capture(LOG_LEVEL_NOTICE);
    atomic_store(&lookups.answers[0], SILENT);
    lookups_start(1, 50 * NS_PER_MS);
    ck_assert(!lookups_is_known(0));
    atomic_store(&lookups.answers[0], 1);
    UNTIL(lookups_is_known(0));
    UNTIL(log_lines_with("server s (0): the name is known: 127.0.0.1:1000") == 1);
}

TEST(resolver, unresolved_name_is_looked_up_again_until_it_resolves)
{
    log_lines_capture(LOG_LEVEL_NOTICE);
    lookups.conf.retry_ns = 10 * NS_PER_MS;
    atomic_store(&lookups.answers[0], -ENOENT);
    lookups_start(1, UNTIL_LIMIT_NS);
    EXPECT_LOG_LINES("upstream back: server s (0): cannot look up the name: there "
                     "is no such name; the server gets no clients; trying again within 0.01 s",
                     1);
    UNTIL(atomic_load(&lookups.lookups[0]) >= 5);
    ck_assert(!lookups_is_known(0));
    EXPECT_LOG_LINES("cannot look up", 1);
    atomic_store(&lookups.answers[0], -EAGAIN);
    UNTIL(log_lines_with("no name server answers") == 1);
    atomic_store(&lookups.answers[0], 2);
    UNTIL(log_lines_with("server s (0): the name is known: 127.0.0.1:1000 and 1 more") == 1);
    ck_assert_uint_eq(lookups_port_of(0, 1), 1001);
    EXPECT_LOG_LINES("cannot look up", 2);
}

TEST(resolver, failed_lookup_is_not_repeated_before_the_retry_time)
{
    int64_t first_at_ns;

    lookups.conf.retry_ns = 200 * NS_PER_MS;
    atomic_store(&lookups.answers[0], -ENOENT);
    lookups_start(1, UNTIL_LIMIT_NS);
    first_at_ns = atomic_load(&lookups.looked_up_at_ns);
    UNTIL(atomic_load(&lookups.lookups[0]) == 2);
    ck_assert_int_ge(atomic_load(&lookups.looked_up_at_ns) - first_at_ns,
                     lookups.conf.retry_ns / 5 * 4);
}

TEST(resolver, names_that_fail_together_are_retried_up_to_a_fifth_earlier)
{
    int64_t from_ns = clock_now_ns(), until_ns, due_at_ns[NAMES];
    int64_t least_ns = CLOCK_NEVER, most_ns = 0;

    for (unsigned n = 0; n < NAMES; n++)
        atomic_store(&lookups.answers[n], -ENOENT);
    lookups_start(NAMES, UNTIL_LIMIT_NS);
    loop_runner_call(lookups.control, lookups_read_due, due_at_ns);
    until_ns = clock_now_ns();
    for (unsigned n = 0; n < NAMES; n++) {
        least_ns = due_at_ns[n] < least_ns ? due_at_ns[n] : least_ns;
        most_ns = due_at_ns[n] > most_ns ? due_at_ns[n] : most_ns;
    }
    ck_assert_int_ge(least_ns - from_ns, LATER / 100 * 80);
    ck_assert_int_le(least_ns - until_ns, LATER / 100 * 82);
    ck_assert_int_ge(most_ns - from_ns, LATER / 100 * 98);
    ck_assert_int_le(most_ns - until_ns, LATER);
}

/* The control loop has no space for what an executor hands to it, for a moment. */
TEST(resolver, answers_during_a_blocked_control_loop_are_not_lost)
{
    struct budget_conf budget = {.io_ratio = 50, .quantum_ns = 100 * NS_PER_MS};
    struct tasks_block block;

    loop_runner_destroy(lookups.control);
    lookups.control = loop_runner_create_with(budget, LOOP_PENDING_MIN);
    for (unsigned n = 0; n < NAMES; n++)
        atomic_store(&lookups.answers[n], SILENT);
    lookups_create(NAMES, 2);
    ck_assert_int_eq(lookups_try_start(0), 0);
    tasks_block_begin(&block, lookups.control);
    for (unsigned n = 0; n < NAMES; n++)
        atomic_store(&lookups.answers[n], 1);
    for (unsigned n = 0; n < NAMES; n++)
        UNTIL(atomic_load(&lookups.lookups[n]) == 1);
    UNTIL(atomic_load(&lookups.running) == 0);
    PAUSE_MS(10); /* from the lookup to the control loop */
    tasks_block_end(&block);
    for (unsigned n = 0; n < NAMES; n++)
        UNTIL(lookups_is_known(n));
}

/* 0: of the control loop; 1: of the executor */
TEST(resolver, start_without_an_executor_thread_fails)
{
    fault_plan(FAULT_PTHREAD_CREATE, 1, 1, EAGAIN); /* the control loop has one */
    lookups_create(2, 1);
    ck_assert_int_eq(lookups_try_start(UNTIL_LIMIT_NS), -EAGAIN);
    EXPECT_LOG_LINES("lookups: cannot start a thread", 1);
}

TEST_EACH(resolver, start_fails_while_a_required_name_is_unresolved, 2)
{
    lookups.upstream_conf.resolve_required = true;
    atomic_store(&lookups.answers[1], _i ? -ENOENT : SILENT);
    lookups_create(2, 4);
    ck_assert_int_eq(lookups_try_start(_i ? UNTIL_LIMIT_NS : 500 * NS_PER_MS), -ENODATA);
    ck_assert_uint_eq(log_lines_with("server s1 (1): the name has no address yet: "), 1);
    EXPECT_LOG_LINES("resolve_required", 1);
    atomic_store(&lookups.answers[1], 1);
}

/* ---- proxy loops ---- */

TEST(resolver, address_of_our_own_listener_is_left_out_and_logged)
{
    atomic_store(&lookups.answers[0], 3);
    atomic_store(&lookups.loop_port, 1001);
    lookups_start(1, UNTIL_LIMIT_NS);
    ck_assert_uint_eq(lookups_known(0), 2);
    ck_assert_uint_eq(lookups_port_of(0, 0), 1000);
    ck_assert_uint_eq(lookups_port_of(0, 1), 1002);
    ck_assert_uint_eq(
        log_lines_with("server s (0): proxy loop: 127.0.0.1:1001 is a listener of this process"),
        1);
}

TEST(resolver, name_with_own_listeners_only_is_retried_and_logged_once)
{
    lookups.conf.retry_ns = 10 * NS_PER_MS;
    atomic_store(&lookups.loop_port, 1000);
    lookups_start(1, UNTIL_LIMIT_NS);
    UNTIL(atomic_load(&lookups.lookups[0]) >= 5);
    ck_assert(!lookups_is_known(0));
    EXPECT_LOG_LINES("is a listener of this process", 1);
    EXPECT_LOG_LINES("none of its addresses can be used", 1);
    atomic_store(&lookups.loop_port, 0);
    UNTIL(lookups_is_known(0));
}

TEST(resolver, repeated_address_of_our_own_listener_is_logged_once)
{
    lookups.upstream_conf.resolve_interval_ns = 5 * NS_PER_MS;
    atomic_store(&lookups.answers[0], 3);
    atomic_store(&lookups.loop_port, 1001);
    lookups_start(1, UNTIL_LIMIT_NS);
    lookups_pass_lookups(0, 4);
    EXPECT_LOG_LINES("is a listener of this process", 1);
    atomic_store(&lookups.loop_port, 0);
    UNTIL(lookups_known(0) == 3);
    atomic_store(&lookups.loop_port, 1002);
    UNTIL(log_lines_with("127.0.0.1:1002 is a listener of this process") == 1);
    lookups_pass_lookups(0, 4);
    EXPECT_LOG_LINES("is a listener of this process", 2);
}

/* ---- the end ---- */

TEST(resolver, stopping_does_not_wait_for_the_next_retry)
{
    int64_t began_at_ns = clock_now_ns();

    atomic_store(&lookups.answers[0], -ENOENT);
    lookups_start(1, UNTIL_LIMIT_NS);
    executor_stop(lookups.executor, 0);
    ck_assert_int_eq(executor_join(lookups.executor, UNTIL_LIMIT_NS), 0);
    ck_assert_int_lt(since_ms(began_at_ns), LATER / NS_PER_MS);
    ck_assert_uint_eq(atomic_load(&lookups.lookups[0]), 1);
}

TEST_EACH(resolver, hanging_lookup_is_named_and_ends_when_it_returns, 2)
{
    struct executor_stats stats;

    for (unsigned n = 0; n < 10; n++) /* more than there are threads */
        atomic_store(&lookups.answers[n], SILENT);
    lookups_start(10, 0);
    UNTIL(atomic_load(&lookups.running) == 4);
    executor_stop(lookups.executor, 0);
    ck_assert_int_eq(executor_join(lookups.executor, 50 * NS_PER_MS), -ETIMEDOUT);
    executor_stats(lookups.executor, &stats);
    ck_assert_str_eq(stats.running_name, "look up a host name");
    for (unsigned n = 0; n < 10; n++)
        atomic_store(&lookups.answers[n], _i ? 1 : -ENOENT);
    ck_assert_int_eq(executor_join(lookups.executor, UNTIL_LIMIT_NS), 0);
    for (unsigned n = 4; n < 10; n++)
        ck_assert_uint_eq(atomic_load(&lookups.lookups[n]), 0); /* dropped */
}

static unsigned names_looked_up(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < NAMES; i++)
        n += atomic_load(&lookups.lookups[i]);
    return n;
}

enum end_state {
    END_LOOKING_UP,  /* lookups are under way, and more wait for a thread */
    END_ANSWERED,    /* answers wait for the control loop */
    END_WAITING,     /* for the next time */
    END_ALL_THE_TIME /* it goes round as fast as it can */
};

static void reach(enum end_state state, struct tasks_block *block)
{
    if (state <= END_ANSWERED)
        for (unsigned n = 0; n < 8; n++)
            atomic_store(&lookups.answers[n], SILENT);
    if (state == END_ALL_THE_TIME)
        lookups.upstream_conf.resolve_interval_ns = lookups.conf.retry_ns = 1;
    lookups_create(8, 2);
    ck_assert_int_eq(lookups_try_start(state < END_WAITING ? 0 : UNTIL_LIMIT_NS), 0);
    if (state == END_LOOKING_UP)
        UNTIL(atomic_load(&lookups.running) == 2);
    if (state != END_ANSWERED)
        return;
    tasks_block_begin(block, lookups.control);
    for (unsigned n = 0; n < 8; n++)
        atomic_store(&lookups.answers[n], 1);
    UNTIL(atomic_load(&lookups.lookups[7]) == 1);
}

/* What it holds the control loop or the lookups by is let go of when they have been told to end. */
static void let_go(enum end_state state, struct tasks_block *block)
{
    if (state == END_ANSWERED)
        tasks_block_end(block);
    for (unsigned n = 0; n < 8; n++)
        atomic_store(&lookups.answers[n], n % 2 ? 1 : -ENOENT);
}

/* The control loop first, as the server does it, or last. */
TEST_EACH(resolver, resolver_can_be_stopped_in_any_state, 2 * (END_ALL_THE_TIME + 1))
{
    enum end_state state = (enum end_state)(_i / 2);
    bool control_first = _i % 2;
    struct tasks_block block;
    unsigned before;

    log_lines_capture(LOG_LEVEL_ERROR); /* what is cut off is worth a warning */
    lookups.upstream_conf.resolve_interval_ns = LATER;
    reach(state, &block);
    if (control_first)
        loop_stop(lookups.control, 0, 0);
    else
        executor_stop(lookups.executor, 0);
    let_go(state, &block);
    if (control_first)
        lookups_end_control();
    lookups_end_executor();
    lookups_end_control();
    before = names_looked_up();
    PAUSE_MS(10);
    ck_assert_uint_eq(names_looked_up(), before);
}

GROUP(none, NULL, NULL);

TEST(none, destroying_null_is_allowed)
{
    resolver_destroy(NULL);
}
