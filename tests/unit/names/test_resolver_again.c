/* names/resolver: when a name is looked up again, after an answer and after a failure. */
#include <errno.h>

#include "names/resolver_internal.h"
#include "support/log_lines.h"
#include "support/lookups.h"
#include "support/loop_runner.h"
#include "support/suite.h"
#include "support/until.h"

GROUP(resolver, lookups_setup, lookups_teardown);

TEST(resolver, without_an_interval_a_resolved_name_is_not_looked_up_again)
{
    lookups.conf.retry_ns = 5 * NS_PER_MS;
    atomic_store(&lookups.answers[0], -ENOENT);
    lookups_start(2, UNTIL_LIMIT_NS);
    lookups_pass_lookups(0, 10);
    ck_assert_uint_eq(atomic_load(&lookups.lookups[1]), 1);
}

TEST(resolver, with_an_interval_a_changed_answer_is_used_and_logged)
{
    lookups.upstream_conf.resolve_interval_ns = 5 * NS_PER_MS;
    log_lines_capture(LOG_LEVEL_NOTICE);
    atomic_store(&lookups.answers[0], 2);
    lookups_start(1, UNTIL_LIMIT_NS);
    lookups_pass_lookups(0, 3);
    ck_assert_uint_eq(log_lines_with("upstream"), 0); /* known in time, and nothing new since */
    atomic_store(&lookups.shift, 5000);
    UNTIL(lookups_port_of(0, 0) == 6000);
    ck_assert_uint_eq(lookups_port_of(0, 1), 6001);
    UNTIL(log_lines_with("upstream back: server s (0): the name resolves to other addresses: "
                         "127.0.0.1:6000 and 1 more") == 1);
    lookups_pass_lookups(0, 3);
    EXPECT_LOG_LINES("upstream", 1);
    atomic_store(&lookups.answers[0], 1);
    UNTIL(lookups_known(0) == 1);
    UNTIL(log_lines_with("resolves to other addresses: 127.0.0.1:6000") == 2);
}

TEST(resolver, interval_begins_with_the_answer_even_if_the_start_waits_for_others)
{
    int64_t due_at_ns[NAMES], started_at_ns;

    lookups.upstream_conf.resolve_interval_ns = 100 * NS_PER_MS;
    atomic_store(&lookups.answers[1], SILENT);
    atomic_store(&lookups.only_once, true);
    lookups_start(2, 300 * NS_PER_MS);
    loop_runner_call(lookups.control, lookups_read_due, due_at_ns);
    started_at_ns = clock_now_ns();
    ck_assert_int_gt(due_at_ns[0], 0);
    ck_assert_int_le(due_at_ns[0], started_at_ns);
    atomic_store(&lookups.only_once, false);
    atomic_store(&lookups.answers[1], 1);
}

TEST(resolver, lookup_is_not_repeated_before_the_interval_is_over)
{
    int64_t first_at_ns;

    lookups.upstream_conf.resolve_interval_ns = 200 * NS_PER_MS;
    lookups.conf.retry_ns = 0;
    lookups_start(1, UNTIL_LIMIT_NS);
    first_at_ns = atomic_load(&lookups.looked_up_at_ns);
    UNTIL(atomic_load(&lookups.lookups[0]) == 2);
    ck_assert_int_ge(atomic_load(&lookups.looked_up_at_ns) - first_at_ns,
                     lookups.upstream_conf.resolve_interval_ns / 2);
}

TEST(resolver, failed_lookup_keeps_the_addresses_and_is_logged_once)
{
    lookups.upstream_conf.resolve_interval_ns = 5 * NS_PER_MS;
    lookups.conf.retry_ns = 2 * NS_PER_MS;
    log_lines_capture(LOG_LEVEL_NOTICE);
    lookups_start(1, UNTIL_LIMIT_NS);
    atomic_store(&lookups.answers[0], -EAGAIN);
    lookups_pass_lookups(0, 5);
    ck_assert_uint_eq(lookups_port_of(0, 0), 1000);
    ck_assert_uint_eq(
        log_lines_with("server s (0): cannot look up the name: no name server "
                       "answers; its addresses stay in use; trying again within 0.002 s"),
        1);
    EXPECT_LOG_LINES("upstream", 1);
    atomic_store(&lookups.answers[0], 1);
    UNTIL(log_lines_with("server s (0): the name is known again: 127.0.0.1:1000") == 1);
    lookups_pass_lookups(0, 3);
    EXPECT_LOG_LINES("upstream", 2);
}

TEST(resolver, addresses_that_changed_during_failed_lookups_are_used)
{
    lookups.upstream_conf.resolve_interval_ns = 5 * NS_PER_MS;
    lookups.conf.retry_ns = 2 * NS_PER_MS;
    lookups_start(1, UNTIL_LIMIT_NS);
    atomic_store(&lookups.answers[0], -ENOENT);
    UNTIL(log_lines_with("cannot look up") == 1);
    atomic_store(&lookups.shift, 5000);
    atomic_store(&lookups.answers[0], 1);
    UNTIL(lookups_port_of(0, 0) == 6000);
    UNTIL(log_lines_with("the name resolves to other addresses: 127.0.0.1:6000") == 1);
}

TEST(resolver, failed_lookup_is_retried_after_the_retry_time_and_not_the_interval)
{
    lookups.upstream_conf.resolve_interval_ns = LATER;
    lookups.conf.retry_ns = 5 * NS_PER_MS;
    atomic_store(&lookups.answers[0], -ENOENT);
    lookups_start(2, UNTIL_LIMIT_NS);
    lookups_pass_lookups(0, 3);
    atomic_store(&lookups.answers[0], 1);
    UNTIL(lookups_is_known(0));
    ck_assert_uint_eq(atomic_load(&lookups.lookups[1]), 1);
}

TEST(resolver, no_pause_after_a_failure_is_longer_than_the_interval)
{
    lookups.upstream_conf.resolve_interval_ns = 5 * NS_PER_MS;
    atomic_store(&lookups.answers[0], -ENOENT);
    lookups_start(1, UNTIL_LIMIT_NS);
    EXPECT_LOG_LINES("trying again within 0.005 s", 1);
    lookups_pass_lookups(0, 3);
}

/* When the next lookup of the first and of the last name is planned. */
struct pauses {
    int64_t first_ns, last_ns;
};

static void do_pauses(void *arg)
{
    struct pauses *p = arg;

    *p = (struct pauses){.first_ns = CLOCK_NEVER};
    list_for_each (node, &lookups.resolver->names) {
        int64_t at_ns = LIST_ENTRY(node, struct resolver_name, link)->pause.at_ns;

        p->first_ns = at_ns < p->first_ns ? at_ns : p->first_ns;
        p->last_ns = at_ns > p->last_ns ? at_ns : p->last_ns;
    }
}

TEST(resolver, lookups_made_together_spread_over_time)
{
    int64_t began_at_ns = clock_now_ns();
    struct pauses p;

    lookups.upstream_conf.resolve_interval_ns = LATER;
    lookups.upstream_conf.resolve_interval_min_ns =
        2 * LATER; /* above the interval it means nothing */
    lookups_start(NAMES, UNTIL_LIMIT_NS);
    loop_runner_call(lookups.control, do_pauses, &p);
    ck_assert_int_ge(p.first_ns - began_at_ns, LATER / 2);
    ck_assert_int_ge(p.last_ns - p.first_ns, LATER / 4);
    ck_assert_int_le(p.last_ns - clock_now_ns(), LATER);
}

TEST(resolver, a_ttl_shorter_than_the_interval_decides)
{
    lookups.upstream_conf.resolve_interval_ns = LATER;
    atomic_store(&lookups.ttl_ns, 5 * NS_PER_MS);
    lookups_start(1, UNTIL_LIMIT_NS);
    lookups_pass_lookups(0, 3);
}

TEST_EACH(resolver, a_ttl_is_kept_within_bounds, 2)
{
    int64_t first_at_ns;

    atomic_store(&lookups.ttl_ns, _i ? LATER : 0);
    lookups.upstream_conf.resolve_interval_ns = _i ? 5 * NS_PER_MS : LATER;
    lookups.upstream_conf.resolve_interval_min_ns = _i ? 1 : 200 * NS_PER_MS;
    lookups_start(1, UNTIL_LIMIT_NS);
    first_at_ns = atomic_load(&lookups.looked_up_at_ns);
    UNTIL(atomic_load(&lookups.second_at_ns[0]) > 0);
    if (_i == 0)
        ck_assert_int_ge(atomic_load(&lookups.second_at_ns[0]) - first_at_ns, 200 * NS_PER_MS);
}

/* A session that connects to an address keeps it; under ASan it would be seen if not. */
TEST(resolver, replaced_addresses_are_kept_while_in_use)
{
    struct endpoint_addresses *at;

    lookups.upstream_conf.resolve_interval_ns = NS_PER_MS;
    lookups_start(1, UNTIL_LIMIT_NS);
    at = endpoint_hold_addresses(&lookups_server_at(0)->endpoint); /* nobody replaces it yet */
    for (unsigned i = 1; i <= 20; i++) {
        atomic_store(&lookups.shift, i);
        UNTIL(lookups_port_of(0, 0) == 1000 + i);
    }
    ck_assert_uint_eq(ntohs(at->list[0].u.in.sin_port), 1000);
    endpoint_release_addresses(at);
}

static const enum upstream_names all_names[] = {UPSTREAM_NAME_EACH, UPSTREAM_NAME_ONE,
                                                UPSTREAM_SERVICE};

static void start_held(enum upstream_names names, int64_t hold_ns)
{
    log_lines_capture(LOG_LEVEL_INFO);
    lookups.upstream_conf.resolve_interval_ns = lookups.conf.retry_ns = 5 * NS_PER_MS;
    lookups.upstream_conf.resolve_hold_ns = hold_ns;
    if (names == UPSTREAM_SERVICE) {
        lookups_record(0, "7", 1, 1);
        lookups_start_service(1);
    } else {
        lookups_name_is(0, names);
        lookups_start(1, UNTIL_LIMIT_NS);
    }
}

static void answer_all(int answer)
{
    atomic_store(&lookups.n_records, answer);
    atomic_store(&lookups.answers[0], answer);
}

static void count_present(void *arg)
{
    const struct server_set *set = membership_now(&lookups.upstream->membership);

    *(unsigned *)arg = 0;
    for (unsigned i = 0; i < set->n; i++)
        *(unsigned *)arg += (endpoint_load(&set->servers[i]->endpoint) & ENDPOINT_ABSENT) == 0;
}

static unsigned present(void)
{
    unsigned n;

    loop_runner_call(lookups.control, count_present, &n);
    return n;
}

TEST_EACH(resolver, servers_of_a_missing_name_are_removed_after_resolve_hold_and_return,
          ARRAY_LEN(all_names))
{
    const int64_t hold_ns = 300 * NS_PER_MS;
    int64_t began_ns;

    start_held(all_names[_i], hold_ns);
    ck_assert_uint_eq(present(), 1);
    began_ns = clock_now_ns();
    answer_all(-ENOENT);
    UNTIL(present() == 0);
    ck_assert_int_ge(clock_now_ns() - began_ns, hold_ns);
    ck_assert_uint_eq(log_lines_with("there is no such name; its addresses stay in use for 0.3 s"),
                      1);
    ck_assert_uint_eq(log_lines_with("s (0): the name does not exist any more: no new clients"), 1);
    UNTIL(log_lines_with("cannot look up") == 1);
    answer_all(1);
    UNTIL(present() == 1);
    ck_assert_uint_eq(log_lines_with("the name is known: 127.0.0.1:"), 2);
}

TEST_EACH(resolver, with_a_hold_of_0_servers_are_removed_with_the_first_answer,
          ARRAY_LEN(all_names))
{
    start_held(all_names[_i], 0);
    answer_all(-ENOENT);
    UNTIL(present() == 0);
    ck_assert_uint_eq(log_lines_with("stay in use"), 0);
}

TEST_EACH(resolver, only_an_answer_that_the_name_does_not_exist_ends_the_hold, ARRAY_LEN(all_names))
{
    start_held(all_names[_i], 20 * NS_PER_MS);
    answer_all(-EREMOTEIO);
    UNTIL(log_lines_with("the name server fails") == 1);
    usleep(60000);
    ck_assert_uint_eq(present(), 1);
    answer_all(-ENOENT);
    UNTIL(present() == 0);
}
