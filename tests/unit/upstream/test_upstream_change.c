/*
 * upstream/upstream_change: another configuration while sessions run. What is in both stays as it
 * is, with all it has.
 */
#include <string.h>

#include "support/changing.h"
#include "support/log_lines.h"
#include "support/suite.h"
#include "support/until.h"
#include "upstream/server_line.h"
#include "upstream/upstream.h"
#include "upstream/upstream_change.h"

/* ---- servers ---- */

GROUP(change, changing_setup, changing_teardown);

TEST(change, unchanged_server_keeps_its_state_and_counters)
{
    struct upstream_server *a, *b;
    struct server_line *line;

    changing_open_group();
    a = changing_server_at(0);
    b = changing_pick(0);
    line = membership_find_line(changing_members(), "a");
    counters_began(&a->counters);
    (void)endpoint_set_flag(&a->endpoint, ENDPOINT_DOWN);
    changing_change_all();
    ck_assert_str_eq(changing_names(), "a b");
    ck_assert_ptr_eq(changing_server_at(0), a);
    ck_assert_ptr_eq(membership_find_line(changing_members(), "a"), line);
    ck_assert_uint_eq(changing_load(a) & ~ENDPOINT_COUNT_MASK, ENDPOINT_DOWN);
    ck_assert_uint_eq(changing_load(b) & ENDPOINT_COUNT_MASK, 1);
    ck_assert_uint_eq(atomic_load(&a->counters.began), 1);
    upstream_leave(changing.upstream, b, UPSTREAM_UNKNOWN);
}

TEST(change, an_ejected_server_stays_ejected_for_its_time)
{
    struct upstream_server *a;

    changing_open_group();
    a = changing_pick(0);
    upstream_leave(changing.upstream, a, UPSTREAM_FAILED);
    ck_assert_uint_eq(changing_load(a), ENDPOINT_EJECTED);
    changing.next_servers[a->position].weight = 5;
    changing_change_all();
    ck_assert_uint_eq(changing_load(a), ENDPOINT_EJECTED);
    ck_assert(ejection_some_out(&changing.upstream->ejection));
}

TEST(change, changed_weights_apply)
{
    unsigned n[2] = {0};

    changing_open_group();
    changing.next_servers[1].weight = 3;
    changing_change_all();
    for (unsigned i = 0; i < 8; i++)
        n[changing_pick(0)->position]++;
    ck_assert_uint_eq(n[0], 2);
    ck_assert_uint_eq(n[1], 6);
    ck_assert_uint_eq(atomic_load(&changing_server_at(1)->endpoint.weight), 3);
    ck_assert_uint_eq(changing_server_at(1)->conf->weight, 3);
}

TEST(change, servers_follow_the_order_of_the_lines)
{
    changing_open_group();
    changing.next.balance = BALANCER_FIRST;
    changing.next.n_servers = 3;
    changing.next_servers[0] = changing.servers[2];
    changing.next_servers[1] = changing.servers[1];
    changing.next_servers[2] = changing.servers[0];
    changing_change_all();
    ck_assert_str_eq(changing_names(), "c b a");
    ck_assert_str_eq(changing_pick(0)->name, "c");
    ck_assert_str_eq(changing_pick(0)->name, "c");
}

TEST(change, removed_server_keeps_its_sessions_and_is_freed_after_them)
{
    struct upstream_server *b;

    changing_open_group();
    changing.next_servers[0].weight = 0;
    changing_change_all();
    b = changing_pick(0);
    ck_assert_str_eq(b->name, "b");
    changing.next_servers[0].weight = 1;
    changing.next.n_servers = 1;
    changing_change_all();
    ck_assert_str_eq(changing_names(), "a");
    ck_assert_uint_eq(changing_load(b), ENDPOINT_ABSENT | 1);
    ck_assert_uint_eq(changing_remembered(), 2);
    ck_assert_str_eq(b->conf->id, "b");
    upstream_leave(changing.upstream, b, UPSTREAM_UNKNOWN);
    ck_assert_uint_eq(changing_remembered(), 1);
    ck_assert(!upstream_sweep_unused(changing.upstream));
}

TEST(change, server_added_again_has_its_open_sessions)
{
    struct upstream_server *b;

    changing_open_group();
    changing.next_servers[0].weight = 0;
    changing_change_all();
    b = changing_pick(0);
    changing.next.n_servers = 1;
    changing_change_all();
    changing_members()->watch = (struct membership_watch){.changed = changing_on_changed};
    changing.next.n_servers = 2;
    changing.next_servers[1].weight = 7;
    changing_change_all(); /* it has come: that its line changed is not told, too */
    ck_assert_ptr_eq(changing_server_at(1), b);
    ck_assert_uint_eq(changing_load(b), 1);
    ck_assert_uint_eq(b->conf->weight, 7);
    upstream_leave(changing.upstream, b, UPSTREAM_UNKNOWN);
}

TEST(change, server_with_another_address_is_a_new_server)
{
    struct upstream_server *a;

    changing_open_group();
    a = changing_server_at(0);
    upstream_server_hold(a);
    changing.next_servers[0].addresses = &changing.addresses[SERVERS];
    changing_change_all();
    ck_assert_str_eq(changing_names(), "a b");
    ck_assert_ptr_ne(changing_server_at(0), a);
    ck_assert_uint_eq(changing_load(a), ENDPOINT_ABSENT);
    ck_assert_uint_eq(changing_load(changing_server_at(0)), 0);
    upstream_server_release(a);
    ck_assert_uint_eq(changing_remembered(), 2);
}

TEST(change, disabled_server_is_the_same_object_without_new_sessions)
{
    struct upstream_server *a;

    changing_open_group();
    a = changing_server_at(0);
    changing.next_servers[0].disabled = true;
    changing_change_all();
    ck_assert_ptr_eq(changing_server_at(0), a);
    ck_assert(atomic_load(&a->is_disabled));
    for (unsigned i = 0; i < 4; i++)
        ck_assert_str_eq(changing_pick(0)->name, "b");
    changing.next_servers[0].disabled = false;
    changing_change_all();
    ck_assert_ptr_eq(changing_server_at(0), a);
    ck_assert(!atomic_load(&a->is_disabled));
    (void)changing_pick(0);
    ck_assert_uint_gt(endpoint_active(&a->endpoint) + 1, 0);
}

TEST(change, server_that_becomes_a_backup_gets_no_sessions_beside_others)
{
    changing_open_group();
    changing.next_servers[0].backup = true;
    changing_change_all();
    for (unsigned i = 0; i < 4; i++)
        ck_assert_str_eq(changing_pick(0)->name, "b");
}

TEST(change, new_server_starts_down_if_it_must_be_checked_first)
{
    changing_open_group();
    changing.next.n_servers = 3;
    changing.next.checks.kind = UPSTREAM_CHECK_TCP;
    changing.next.checks.health.initial = HEALTH_STARTS_DOWN;
    changing_change_all();
    ck_assert_uint_eq(changing_load(changing_server_at(0)), 0);
    ck_assert_uint_eq(changing_load(changing_server_at(2)), ENDPOINT_DOWN);
}

static int note_new(void *cookie, struct upstream_server *server,
                    const struct upstream_server_conf *line)
{
    strcat(strcat(cookie, server->name), line->id);
    return 0;
}

TEST(change, only_servers_that_come_into_use_are_checked_before_it)
{
    char new[64] = "";

    changing_open_group();
    changing.next.n_servers = 3;
    changing.next.checks.kind = UPSTREAM_CHECK_TCP;
    changing.next.checks.health.initial = HEALTH_STARTS_DOWN;
    changing_prepare();
    ck_assert_int_eq(upstream_change_each_new(changing.change, note_new, new), 0);
    ck_assert_str_eq(new, "cc");
    upstream_change_commit(changing.change);
}

/* 0: it was disabled; 1: it was checked, but had weight 0. */
TEST_EACH(change, server_enabled_or_given_a_weight_by_a_reload_starts_slowly, 2)
{
    changing.servers[1].disabled = _i == 0;
    changing.servers[1].weight = _i == 0;
    changing.conf.checks.kind = UPSTREAM_CHECK_TCP;
    changing.conf.checks.health.initial = HEALTH_STARTS_DOWN;
    changing.conf.slow_start_ns = UNTIL_LIMIT_NS;
    changing_open_group();
    for (unsigned i = 0; i < 2; i++)
        (void)endpoint_clear_flag(&changing_server_at(i)->endpoint, ENDPOINT_DOWN);
    changing.next_servers[1].disabled = false;
    changing.next_servers[1].weight = 1;
    changing_change_all();
    ck_assert_uint_eq(changing_load(changing_server_at(0)), 0);
    ck_assert_uint_eq(changing_load(changing_server_at(1)),
                      ENDPOINT_WARMING | (_i == 0 ? ENDPOINT_DOWN : 0));
}

TEST(change, a_new_server_starts_slowly)
{
    changing_open_group();
    changing.next.n_servers = 3;
    changing.next.slow_start_ns = UNTIL_LIMIT_NS;
    changing_change_all();
    ck_assert_uint_eq(changing_load(changing_server_at(0)), 0);
    ck_assert_uint_eq(changing_load(changing_server_at(2)), ENDPOINT_WARMING);
}
