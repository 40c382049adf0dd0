/*
 * upstream/upstream: the group as configured, who is sent where, and what comes of what became of
 * them.
 */
#include <errno.h>

#include "base/clock.h"
#include "support/figures.h"
#include "support/grouped.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/suite.h"
#include "support/until.h"
#include "upstream/upstream.h"

/* ---- the group ---- */

GROUP(upstream, grouped_setup, grouped_teardown);

TEST(upstream, servers_are_in_the_order_of_the_configuration)
{
    grouped.servers[1].weight = 2;
    grouped.servers[2].backup = true;
    grouped.servers[3].max_connections = 9;
    grouped_open_group(4);
    ck_assert_ptr_eq(grouped.upstream->conf, &grouped.conf);
    for (unsigned i = 0; i < 4; i++) {
        const struct endpoint *e = &grouped_server_at(i)->endpoint;

        ck_assert_str_eq(grouped_server_at(i)->conf->id, grouped.servers[i].id);
        ck_assert_str_eq(e->name, grouped.servers[i].id);
        ck_assert_uint_eq(e->weight, i == 1 ? 2 : 1);
        ck_assert_int_eq(e->level, i == 2 ? BALANCER_LEVELS - 1 : 0);
        ck_assert_uint_eq(e->max_connections, i == 3 ? 9 : 0);
        ck_assert_uint_eq(endpoint_load(e), 0);
    }
}

TEST(upstream, servers_without_sessions_are_logged_once)
{
    grouped.servers[1].weight = 0;
    grouped.servers[2].disabled = true;
    grouped_open_group(4);
    upstream_log_unused(grouped.upstream);
    EXPECT_LOG_LINES("upstream back: server b: gets no connections: weight=0", 1);
    EXPECT_LOG_LINES("upstream back: server c: gets no connections: disabled", 1);
    EXPECT_LOG_LINES("gets no connections", 2);
    ck_assert_uint_eq(membership_now(&grouped.upstream->membership)->n, 4);
    ck_assert_uint_eq(membership_now(&grouped.upstream->membership)->n_used, 2);
    figures_log_upstream(grouped.upstream);
    EXPECT_LOG_LINES("stats server back/a state=up", 1);
    EXPECT_LOG_LINES("stats server back/b state=drained", 1);
    EXPECT_LOG_LINES("stats server back/c state=disabled", 1);
}

/* One of four that get sessions would be 25 %, and the last that is left is never ejected. */
TEST(upstream, servers_without_sessions_do_not_count_for_ejection)
{
    grouped.servers[1].weight = 0;
    grouped.servers[2].disabled = true;
    grouped.servers[3].weight = 0;
    grouped_open_group(4);
    for (unsigned i = 0; i < 5; i++)
        grouped_visit(0, UPSTREAM_FAILED);
    ck_assert(!grouped_is_out(0));
    ck_assert_uint_eq(atomic_load(&grouped.upstream->ejection.n_endpoints), 1);
}

TEST(upstream, hash_of_a_server_by_its_id_is_the_same_after_a_restart)
{
    uint64_t hashes[2];

    grouped_open_group(2);
    for (unsigned i = 0; i < 2; i++)
        hashes[i] = grouped_server_at(i)->endpoint.hash;
    ck_assert_uint_ne(hashes[0], hashes[1]);
    upstream_destroy(grouped.upstream);
    grouped.servers[0].id = "b"; /* in another place, and elsewhere */
    grouped.servers[1].id = "a";
    grouped.servers[1].names = UPSTREAM_NAME_ONE;
    grouped.servers[1].n_addresses = 0;
    grouped_open_group(2);
    ck_assert_uint_eq(grouped_server_at(0)->endpoint.hash, hashes[1]);
    ck_assert_uint_eq(grouped_server_at(1)->endpoint.hash, hashes[0]);
}

TEST(upstream, server_given_by_name_is_picked_when_its_addresses_are_set)
{
    grouped.servers[0].names = UPSTREAM_NAME_ONE;
    grouped.servers[0].n_addresses = 0;
    grouped_open_group(1);
    ck_assert_ptr_null(endpoint_hold_addresses(&grouped_server_at(0)->endpoint));
    grouped_pick(-ENOENT);
    ck_assert_int_eq(
        upstream_set_addresses(grouped.upstream, grouped_server_at(0), &grouped.address, 1), 1);
    upstream_leave(grouped.upstream, grouped_pick(0), UPSTREAM_UNKNOWN);
    ck_assert_int_eq(
        upstream_set_addresses(grouped.upstream, grouped_server_at(0), &grouped.address, 1), 0);
}

/* ---- sessions ---- */

TEST(upstream, session_counts_at_its_server_until_it_leaves)
{
    struct upstream_server *first, *second;

    grouped_open_group(2);
    first = grouped_pick(0);
    second = grouped_pick(0);
    ck_assert_ptr_ne(first, second);
    ck_assert_uint_eq(grouped_active(0), 1);
    ck_assert_uint_eq(grouped_active(1), 1);
    ck_assert_uint_eq(grouped_active_in_all(), 2);
    upstream_leave(grouped.upstream, first, UPSTREAM_WORKED);
    upstream_leave(grouped.upstream, second, UPSTREAM_FAILED);
    ck_assert_uint_eq(grouped_active(0) + grouped_active(1), 0);
    ck_assert_uint_eq(grouped_active_in_all(), 0);
}

TEST(upstream, session_does_not_pick_the_same_server_twice)
{
    struct upstream_server *server[3], *none;
    struct balancer_pick_state pick;

    grouped_open_group(3);
    balancer_begin(&pick, 1);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(upstream_pick(grouped.upstream, &pick, &server[i]), 0);
        for (unsigned j = 0; j < i; j++)
            ck_assert_ptr_ne(server[i], server[j]);
    }
    ck_assert_int_eq(upstream_pick(grouped.upstream, &pick, &none), -ENOENT);
    for (unsigned i = 0; i < 3; i++)
        upstream_leave(grouped.upstream, server[i], UPSTREAM_UNKNOWN);
}

TEST(upstream, full_server_gets_no_session_until_one_leaves)
{
    struct upstream_server *server[2];

    grouped.servers[0].max_connections = 2;
    grouped_open_group(1);
    server[0] = grouped_pick(0);
    server[1] = grouped_pick(0);
    grouped_pick(-EBUSY);
    ck_assert_uint_eq(grouped_active(0), 2);
    upstream_leave(grouped.upstream, server[0], UPSTREAM_WORKED);
    server[0] = grouped_pick(0);
    for (unsigned i = 0; i < 2; i++)
        upstream_leave(grouped.upstream, server[i], UPSTREAM_WORKED);
    ck_assert_uint_eq(grouped_active_in_all(), 0);
}

/* ---- those who wait ---- */

struct waiting {
    struct balancer_pick_state pick;
    struct wait_ticket *ticket;
    struct endpoint *got;
    int error;
    atomic_uint done;
};

static void on_done(void *cookie, struct endpoint *e, int error)
{
    struct waiting *w = cookie;

    w->got = e;
    w->error = error;
    atomic_fetch_add(&w->done, 1);
}

static void join(void *arg)
{
    struct waiting *w = arg;

    balancer_begin(&w->pick, 1);
    ck_assert_int_eq(wait_queue_join(&grouped.upstream->waiting, &w->ticket, &w->pick, on_done, w),
                     0);
}

/* Server a is full; who waits gets server b as soon as it is known where that is. */
TEST(upstream, queued_session_gets_a_server_whose_name_is_resolved)
{
    struct loop *loop = loop_runner_create();
    struct waiting waiting = {.done = 0};
    struct upstream_server *first;

    grouped.servers[0].max_connections = grouped.servers[1].max_connections = 1;
    grouped.servers[1].names = UPSTREAM_NAME_ONE;
    grouped.servers[1].n_addresses = 0;
    grouped.conf.queue_length = 10;
    grouped.conf.queue_timeout_ns = 100 * NS_PER_S;
    grouped_open_group(2);
    first = grouped_pick(0);
    ck_assert_ptr_eq(first, grouped_server_at(0));
    grouped_pick(-EBUSY);
    loop_runner_call(loop, join, &waiting);
    PAUSE_MS(20);
    ck_assert_uint_eq(atomic_load(&waiting.done), 0);
    ck_assert_int_eq(
        upstream_set_addresses(grouped.upstream, grouped_server_at(1), &grouped.address, 1), 1);
    UNTIL(atomic_load(&waiting.done) == 1);
    ck_assert_ptr_eq(waiting.got, &grouped_server_at(1)->endpoint);
    upstream_leave(grouped.upstream, first, UPSTREAM_UNKNOWN);
    upstream_leave(grouped.upstream, grouped_server_at(1), UPSTREAM_UNKNOWN);
    loop_runner_destroy(loop);
}

TEST(upstream, queued_session_gets_the_freed_place_of_a_server)
{
    struct loop *loop = loop_runner_create();
    struct waiting waiting = {.done = 0};
    struct upstream_server *first;

    grouped.servers[0].max_connections = 1;
    grouped.conf.queue_length = 10;
    grouped.conf.queue_timeout_ns = 100 * NS_PER_S;
    grouped_open_group(1);
    first = grouped_pick(0);
    loop_runner_call(loop, join, &waiting);
    upstream_leave(grouped.upstream, first, UPSTREAM_WORKED);
    UNTIL(atomic_load(&waiting.done) == 1);
    ck_assert_ptr_eq(waiting.got, &grouped_server_at(0)->endpoint);
    ck_assert_uint_eq(grouped_active(0), 1);
    upstream_leave(grouped.upstream, first, UPSTREAM_WORKED);
    loop_runner_destroy(loop);
}

GROUP(none, NULL, NULL);

TEST(none, destroying_null_is_allowed)
{
    upstream_destroy(NULL);
}
