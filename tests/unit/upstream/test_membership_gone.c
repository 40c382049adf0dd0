/* upstream/membership: servers that are gone, or found again, while they are used. */
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "engine/loop_group.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/members.h"
#include "support/suite.h"
#include "support/until.h"
#include "upstream/upstream.h"

#define WORKERS 3

static unsigned came, went;

/* Servers that there still are, whether anybody finds them or not. */
static unsigned remembered(void)
{
    unsigned n = 0;

    membership_sweep(&members.upstream->membership);
    list_for_each (node, &members.upstream->membership.servers)
        n++;
    return n;
}

/* A session at the server of this name. */
static struct upstream_server *enter(const char *name)
{
    struct upstream_server *server = members_find(name);

    ck_assert_ptr_nonnull(server);
    ck_assert_int_eq(endpoint_enter(&server->endpoint), 0);
    return server;
}

GROUP(membership, members_setup, members_teardown);

/* ---- those that go ---- */

TEST(membership, removed_server_gets_no_sessions_and_keeps_its_open_ones)
{
    struct upstream_server *old;

    members_open_group();
    ck_assert_int_eq(members_update(1, "12"), 1);
    old = enter("one@127.0.0.1:1001");
    ck_assert_int_eq(members_update(1, "2"), 1);
    ck_assert_str_eq(members_names(), "fixed one@127.0.0.1:1002");
    for (unsigned i = 0; i < 10; i++)
        ck_assert_ptr_ne(members_pick(), old);
    ck_assert_uint_eq(endpoint_load(&old->endpoint), ENDPOINT_ABSENT | 1);
    ck_assert_uint_eq(remembered(), 3);
    upstream_leave(members.upstream, old, UPSTREAM_FAILED); /* which ejects nobody any more */
    ck_assert(!ejection_some_out(&members.upstream->ejection));
    ck_assert_uint_eq(remembered(), 2);
}

TEST(membership, server_found_again_is_the_same_object_with_its_sessions)
{
    struct upstream_server *old;

    members_open_group();
    ck_assert_int_eq(members_update(1, "12"), 1);
    old = enter("one@127.0.0.1:1001");
    ck_assert_int_eq(members_update(1, "2"), 1);
    ck_assert_int_eq(members_update(1, "12"), 1);
    ck_assert_ptr_eq(members_find("one@127.0.0.1:1001"), old);
    ck_assert_uint_eq(endpoint_load(&old->endpoint), 1);
    ck_assert_uint_eq(remembered(), 3);
}

TEST(membership, reference_keeps_a_removed_server)
{
    struct upstream_server *old;

    members_open_group();
    ck_assert_int_eq(members_update(1, "12"), 1);
    old = members_find("one@127.0.0.1:1001");
    upstream_server_hold(old);
    ck_assert_int_eq(members_update(1, "2"), 1);
    ck_assert_uint_eq(remembered(), 3);
    ck_assert_str_eq(old->name, "one@127.0.0.1:1001");
    upstream_server_release(old);
    ck_assert_uint_eq(remembered(), 2);
}

TEST(membership, server_set_taken_by_a_reader_keeps_its_servers)
{
    struct server_set *set;

    members_open_group();
    ck_assert_int_eq(members_update(1, "12"), 1);
    set = membership_hold_set(&members.upstream->membership);
    ck_assert_int_eq(members_update(1, "3"), 1);
    ck_assert_int_eq(members_update(1, "4"), 1);
    ck_assert_uint_eq(remembered(), 5); /* in a set or not: the oldest one may have it */
    ck_assert_str_eq(set->servers[2]->name, "one@127.0.0.1:1002");
    membership_release_set(set);
    ck_assert_uint_eq(remembered(), 2);
}

TEST(membership, removed_server_does_not_count_as_ejected)
{
    struct upstream_server *bad;

    members_open_group();
    ck_assert_int_eq(members_update(1, "123"), 1);
    bad = enter("one@127.0.0.1:1001");
    upstream_leave(members.upstream, bad, UPSTREAM_FAILED);
    ck_assert_uint_eq(atomic_load(&members.upstream->ejection.n_out), 1);
    ck_assert_int_eq(members_update(1, "23"), 1);
    ck_assert_uint_eq(atomic_load(&members.upstream->ejection.n_out), 0);
}

TEST(membership, hundred_changes_leak_nothing)
{
    members_open_group();
    for (unsigned i = 0; i < 100; i++)
        ck_assert_int_eq(members_update(1 + i % 2, i % 4 < 2 ? "123" : "456"), 1);
    ck_assert_uint_eq(remembered(), 7);
    ck_assert(list_empty(&members.upstream->membership.replaced));
}

static unsigned left_alone;

/* A mark has changed: is there somebody to send a client to? */
static void look_for_one(struct endpoint_group *g)
{
    const struct server_set *set = membership_now(&members.upstream->membership);
    struct balancer_pick_state pick;
    struct endpoint *e;

    ck_assert_ptr_eq(g, &members.upstream->group);
    balancer_begin(&pick, 0);
    if (balancer_pick(set->balancer, &pick, &e) < 0)
        left_alone++;
    else
        endpoint_leave(e);
}

TEST(membership, server_added_and_removed_in_turn_is_always_in_a_list)
{
    members.conf.n_servers = 2;
    members.lines[0] = members.lines[1];
    members_open_group();
    ck_assert_int_eq(members_update(1, "1"), 1);
    upstream_server_hold(members_find("one@127.0.0.1:1001"));
    ck_assert_int_eq(members_update(1, "2"), 1);
    upstream_server_hold(members_find("one@127.0.0.1:1002"));
    members.upstream->group.changed = look_for_one;
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(members_update(1, i % 2 ? "2" : "1"), 1);
    ck_assert_uint_eq(left_alone, 0);
}

/* It was on its way out of the set when a session that had failed there let it out. */
TEST_EACH(membership, removed_server_ejected_late_is_not_ejected_when_found_again, 2)
{
    struct upstream_server *old;

    members_open_group();
    ck_assert_int_eq(members_update(1, "12"), 1);
    old = enter("one@127.0.0.1:1001");
    ck_assert_int_eq(members_update(1, "2"), 1);
    ck_assert_int_gt(ejection_failed(&members.upstream->ejection, &old->ejection, &old->endpoint,
                                     clock_now_ns(), true),
                     0);
    if (_i == 0) {
        ck_assert_int_eq(members_update(1, "12"), 1);
        ck_assert_uint_eq(endpoint_load(&old->endpoint), 1);
    } else { /* or it takes no place from others at least */
        ck_assert_uint_eq(remembered(), 3);
    }
    ck_assert(!ejection_some_out(&members.upstream->ejection));
}

/* ---- those that come ---- */

TEST(membership, server_added_to_a_known_name_starts_slowly)
{
    members.conf.slow_start_ns = UNTIL_LIMIT_NS;
    members_open_group();
    ck_assert_int_eq(members_update(1, "1"), 1);
    ck_assert(!(endpoint_load(&members_find("one@127.0.0.1:1001")->endpoint) & ENDPOINT_WARMING));
    ck_assert_int_eq(members_update(1, "12"), 1);
    ck_assert(!(endpoint_load(&members_find("one@127.0.0.1:1001")->endpoint) & ENDPOINT_WARMING));
    ck_assert(endpoint_load(&members_find("one@127.0.0.1:1002")->endpoint) & ENDPOINT_WARMING);
}

TEST(membership, server_found_again_starts_slowly)
{
    struct upstream_server *old;

    members.conf.slow_start_ns = UNTIL_LIMIT_NS;
    members_open_group();
    ck_assert_int_eq(members_update(1, "12"), 1);
    old = enter("one@127.0.0.1:1001");
    ck_assert_int_eq(members_update(1, "2"), 1);
    ck_assert_int_eq(members_update(1, "12"), 1);
    ck_assert_uint_eq(endpoint_load(&old->endpoint), ENDPOINT_WARMING | 1);
}

static void on_came(void *cookie, struct upstream_server *server)
{
    ck_assert_ptr_eq(cookie, &came);
    came = came * 10 + (unsigned)(server->name[strlen(server->name) - 1] - '0');
}

static void on_went(void *cookie, struct upstream_server *server)
{
    ck_assert_ptr_eq(cookie, &came);
    went = went * 10 + (unsigned)(server->name[strlen(server->name) - 1] - '0');
}

TEST(membership, watch_is_notified_once_of_each_added_and_removed_server)
{
    members_open_group();
    members.upstream->membership.watch =
        (struct membership_watch){.came = on_came, .went = on_went, .cookie = &came};
    ck_assert_int_eq(members_update(1, "12"), 1);
    ck_assert_int_eq(members_update(1, "12"), 0);
    ck_assert_int_eq(members_update(1, "23"), 1);
    ck_assert_uint_eq(came, 123);
    ck_assert_uint_eq(went, 1);
}

/* ---- while they are used ---- */

static atomic_bool over;

/* As a session does it, on a worker. */
static void pick_and_leave(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 20; i++) {
        struct upstream_server *server = members_pick();
        struct endpoint_addresses *at = endpoint_hold_addresses(&server->endpoint);

        ck_assert_ptr_nonnull(at);
        ck_assert_uint_ge(strlen(server->name), 5);
        endpoint_release_addresses(at);
        upstream_leave(members.upstream, server, UPSTREAM_UNKNOWN);
    }
}

static void *work(void *arg)
{
    while (!atomic_load(&over))
        loop_runner_call(arg, pick_and_leave, NULL);
    return NULL;
}

static void change(void *arg)
{
    static const char *const places[] = {"1", "12", "345", "67", "1234567"};
    unsigned i = *(unsigned *)arg;

    (void)members_update(1 + i % 2, places[i % ARRAY_LEN(places)]);
    membership_sweep(&members.upstream->membership);
}

static void *read_sets(void *arg)
{
    (void)arg;
    while (!atomic_load(&over)) {
        struct server_set *set = membership_hold_set(&members.upstream->membership);

        for (unsigned i = 0; i < set->n; i++)
            ck_assert_uint_ge(strlen(set->servers[i]->name), 5);
        membership_release_set(set);
    }
    return NULL;
}

TEST_EACH(membership, workers_pick_while_servers_change_and_all_servers_are_freed, BALANCER_KINDS)
{
    struct loop_group_conf group = {
        .name = "work",
        .pool = 2,
        .n_loops = WORKERS,
        .loop = {.budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS}, .max_pending_tasks = 64}};
    struct loop *control = loop_runner_create();
    pthread_t threads[WORKERS + 1];

    members.conf.balance = (enum balancer_kind)_i;
    ck_assert_int_eq(loop_group_create(&members.env.workers, &group), 0);
    members_open_group();
    for (unsigned i = 0; i < WORKERS; i++)
        pthread_create(&threads[i], NULL, work, loop_group_at(members.env.workers, i));
    pthread_create(&threads[WORKERS], NULL, read_sets, NULL);
    for (unsigned i = 0; i < 200; i++)
        loop_runner_call(control, change, &i);
    atomic_store(&over, true);
    for (unsigned i = 0; i <= WORKERS; i++)
        pthread_join(threads[i], NULL);
    loop_group_stop(members.env.workers, 0, NS_PER_S);
    loop_runner_join_group(members.env.workers);
    loop_runner_stop(control);
    ck_assert_uint_eq(atomic_load(&members.upstream->group.load), 0);
    ck_assert_uint_eq(remembered(), membership_now(&members.upstream->membership)->n);
    loop_runner_destroy(control);
    loop_group_destroy(members.env.workers);
}
