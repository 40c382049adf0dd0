/*
 * names/resolver: names of another configuration are looked up before it is used, and those that
 * it does not have are forgotten.
 */
#include <errno.h>
#include <string.h>

#include "names/resolver_internal.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/renamed.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"

/* Give upstream ${i}, before start(), a server that needs no name. */
static void add_literal(unsigned i)
{
    static struct address at;

    sockets_loopback(&at, 1);
    renamed.now[i]->lines[1] = (struct upstream_server_conf){
        .id = "t", .address_text = "127.0.0.1:1", .addresses = &at, .n_addresses = 1, .weight = 1};
    renamed.now[i]->conf.n_servers = 2;
}

/* ---- names that come ---- */

GROUP(change, renamed_setup, renamed_teardown);

TEST(change, new_name_is_looked_up_at_prepare_and_used_at_commit)
{
    atomic_store(&renamed.answers[1], 2);
    renamed_start();
    renamed_prepare(1 | 2);
    renamed_until_ready(1);
    ck_assert_int_eq(atomic_load(&renamed.ready_error), 0);
    ck_assert_uint_eq(renamed_known(1), 0);
    renamed_commit();
    ck_assert_uint_eq(renamed_known(1), 2);
    ck_assert_uint_eq(atomic_load(&renamed.lookups[0]), 1); /* it stays */
    ck_assert_uint_eq(atomic_load(&renamed.lookups[1]), 1);
    ck_assert_uint_eq(
        log_lines_with("upstream u1: server s (1): the name is known: 127.0.0.1:1100 and 1 more"),
        1);
}

TEST(change, change_without_new_names_is_ready_at_once)
{
    renamed_start();
    renamed_prepare(1);
    renamed_until_ready(1);
    renamed_commit();
    ck_assert_uint_eq(atomic_load(&renamed.lookups[0]), 1);
    renamed_prepare(0);
    renamed_until_ready(2);
    renamed_cancel();
    ck_assert_uint_eq(renamed_known(0), 1);
}

TEST(change, change_is_ready_when_each_new_name_has_an_answer_or_an_error)
{
    add_literal(2);
    renamed_start();
    atomic_store(&renamed.answers[1], SILENT);
    atomic_store(&renamed.answers[2], -ENOENT);
    renamed_prepare(1 | 2 | 4);
    UNTIL(atomic_load(&renamed.lookups[2]) == 1 && atomic_load(&renamed.running) == 1);
    PAUSE_MS(20);
    ck_assert_uint_eq(atomic_load(&renamed.n_ready), 0);
    atomic_store(&renamed.answers[1], 1);
    renamed_until_ready(1);
    ck_assert_int_eq(atomic_load(&renamed.ready_error), 0);
    renamed_commit();
    ck_assert_uint_eq(renamed_known(1), 1);
    ck_assert_uint_eq(renamed_known(2), 1); /* only the other server */
    EXPECT_LOG_LINES("u2: server s (2): cannot look up the name: there is no such", 1);
}

TEST(change, change_is_ready_at_the_deadline_and_late_answers_are_used)
{
    log_lines_capture(LOG_LEVEL_NOTICE);
    add_literal(1);
    renamed_start();
    atomic_store(&renamed.answers[1], SILENT);
    ck_assert_int_eq(renamed_prepare_with(1 | 2, 30 * NS_PER_MS, &renamed.listeners[0]), 0);
    renamed_until_ready(1);
    ck_assert_int_eq(atomic_load(&renamed.ready_error), 0);
    EXPECT_LOG_LINES("u1: server s (1): the name is still being looked up", 1);
    renamed_commit();
    ck_assert_uint_eq(renamed_known(1), 1);
    atomic_store(&renamed.answers[1], 1);
    UNTIL(renamed_known(1) == 2);
    UNTIL(log_lines_with("u1: server s (1): the name is known: 127.0.0.1:1100") == 1);
}

TEST(change, upstream_without_any_resolved_name_refuses_the_change)
{
    renamed_start();
    atomic_store(&renamed.answers[1], -ENOENT);
    renamed_prepare(1 | 2);
    renamed_until_ready(1);
    ck_assert_int_eq(atomic_load(&renamed.ready_error), -ENODATA);
    EXPECT_LOG_LINES(
        "u1: server s (1): the name has no address yet: there is no such name; without it", 1);
    renamed_cancel();
    ck_assert_uint_eq(renamed_known(0), 1);
}

TEST(change, name_used_by_another_line_needs_no_lookup)
{
    atomic_store(&renamed.answers[0], 2);
    renamed_start();
    strcpy(renamed.texts[1], renamed.texts[0]);
    atomic_store(&renamed.answers[0], -EAGAIN);
    renamed_prepare(1 | 2);
    renamed_until_ready(1);
    ck_assert_int_eq(atomic_load(&renamed.ready_error), 0);
    renamed_commit();
    ck_assert_uint_eq(renamed_known(1), 2);
    ck_assert_uint_eq(atomic_load(&renamed.lookups[0]), 1);
}

static void do_due(void *arg)
{
    int64_t *due_at_ns = arg;

    list_for_each (node, &renamed.resolver->names) {
        const struct resolver_name *name = LIST_ENTRY(node, struct resolver_name, link);

        if (name->upstream == renamed.upstreams[1])
            *due_at_ns = name->pause.at_ns;
    }
}

TEST(change, interval_begins_with_the_answer_however_long_the_change_waits)
{
    int64_t due_at_ns = 0;

    renamed.now[1]->conf.resolve_interval_ns = 50 * NS_PER_MS;
    renamed_start();
    atomic_store(&renamed.answers[2], SILENT);
    ck_assert_int_eq(renamed_prepare_with(1 | 2 | 4, 200 * NS_PER_MS, &renamed.listeners[0]), 0);
    renamed_until_ready(1);
    atomic_store(&renamed.answers[1], SILENT); /* the second time */
    renamed_commit();
    ck_assert_uint_eq(renamed_known(1), 1);
    loop_runner_call(renamed.control, do_due, &due_at_ns);
    ck_assert_int_gt(due_at_ns, 0);
    ck_assert_int_le(due_at_ns, clock_now_ns());
}

/* 0: there is none; 1: no answer in time */
TEST_EACH(change, unresolved_required_name_refuses_the_change, 2)
{
    renamed_start();
    renamed.now[1]->conf.resolve_required = true;
    atomic_store(&renamed.answers[1], _i == 0 ? -ENOENT : SILENT);
    ck_assert_int_eq(renamed_prepare_with(1 | 2, 30 * NS_PER_MS, &renamed.listeners[0]), 0);
    renamed_until_ready(1);
    ck_assert_int_eq(atomic_load(&renamed.ready_error), -ENODATA);
    EXPECT_LOG_LINES("u1: server s (1): the name has no address yet: ", 1);
    EXPECT_LOG_LINES("; resolve_required demands one", 1);
    renamed_cancel();
    atomic_store(&renamed.answers[1], 1);
    renamed_prepare(1 | 2);
    renamed_until_ready(2);
    ck_assert_int_eq(atomic_load(&renamed.ready_error), 0);
    renamed_commit();
    ck_assert_uint_eq(renamed_known(1), 1);
}

/* 0: a server for each address; 1: one server */
TEST_EACH(change, resolved_addresses_of_a_new_name_become_its_servers, 2)
{
    struct membership_place places[RESOLVER_ADDRESSES];

    renamed.now[1]->lines[0].names = _i == 0 ? UPSTREAM_NAME_EACH : UPSTREAM_NAME_ONE;
    atomic_store(&renamed.answers[1], 3);
    atomic_store(&renamed.answers[2], -ENOENT);
    renamed_start();
    renamed_prepare(1 | 2 | 4);
    renamed_until_ready(1);
    ck_assert_uint_eq(resolver_find_places(renamed.change, renamed.upstreams[1],
                                           &renamed.now[1]->lines[0], places),
                      _i ? 1 : 3);
    ck_assert_uint_eq(places[0].n, _i ? 3 : 1);
    ck_assert_uint_eq(places[0].weight, 3);
    ck_assert_uint_eq(ntohs(places[0].list[0].u.in.sin_port), 1100);
    ck_assert_uint_eq(resolver_find_places(renamed.change, renamed.upstreams[0],
                                           &renamed.now[0]->lines[0], places),
                      0); /* old */
    ck_assert_uint_eq(resolver_find_places(renamed.change, renamed.upstreams[2],
                                           &renamed.now[2]->lines[0], places),
                      0);
    ck_assert_uint_eq(resolver_find_places(renamed.change, renamed.upstreams[3],
                                           &renamed.now[3]->lines[0], places),
                      0);
    renamed_cancel();
}
