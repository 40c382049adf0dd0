/*
 * upstream/membership: servers come and go with what a name stands for, and nobody loses one that
 * is used.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "engine/loop_group.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "upstream/server_line.h"
#include "upstream/upstream.h"

#define LINES   3
#define WORKERS 3

static struct address literal;
static struct upstream_server_conf lines[LINES]; /* an address, a name, another name */
static struct upstream_conf conf;
static struct upstream *upstream;
static struct loop_group *workers;
static unsigned came, went;

static void setup(void)
{
    static const char *const ids[LINES] = {"fixed", "one", "two"};

    log_lines_capture(LOG_LEVEL_NOTICE);
    sockets_loopback(&literal, 7);
    conf = (struct upstream_conf){.name = "back",
                                  .servers = lines,
                                  .n_servers = LINES,
                                  .queue_length = 10,
                                  .queue_timeout_ns = UNTIL_LIMIT_NS,
                                  .ejection = {.failures = 1,
                                               .time_ns = UNTIL_LIMIT_NS,
                                               .time_max_ns = UNTIL_LIMIT_NS,
                                               .max_percent = 50}};
    for (unsigned i = 0; i < LINES; i++)
        lines[i] = (struct upstream_server_conf){
            .id = ids[i], .address_text = "there", .names = UPSTREAM_NAME_EACH, .weight = 1};
    lines[0].names = UPSTREAM_LITERAL;
    lines[0].addresses = &literal;
    lines[0].n_addresses = 1;
}

static void open_group(void)
{
    ck_assert_int_eq(upstream_create(&upstream, &conf, workers), 0);
}

static void teardown(void)
{
    upstream_destroy(upstream);
}

static int update_places(unsigned line, const struct membership_place *places, unsigned n)
{
    struct membership *m = &upstream->membership;

    return membership_update(m, m->lines[line], places, n, NULL);
}

/* ${text} is the ports at which the servers of ${line} are, a digit each; what comes of it. */
static int update(unsigned line, const char *text)
{
    struct address list[10];
    struct membership_place places[10];
    unsigned n = 0;

    for (; text[n] != '\0'; n++) {
        sockets_loopback(&list[n], 1000 + (unsigned)(text[n] - '0'));
        places[n] = (struct membership_place){.list = &list[n], .n = 1, .weight = 1};
    }
    return update_places(line, places, n);
}

/* The names of all servers of now. */
static const char *names(void)
{
    static char text[512];
    const struct server_set *set = membership_now(&upstream->membership);
    size_t len = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < set->n; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i > 0 ? " " : "",
                                set->servers[i]->name);
    return text;
}

static struct upstream_server *find(const char *name)
{
    const struct server_set *set = membership_now(&upstream->membership);

    for (unsigned i = 0; i < set->n; i++)
        if (strcmp(set->servers[i]->name, name) == 0)
            return set->servers[i];
    return NULL;
}

/* Servers that there still are, whether anybody finds them or not. */
static unsigned remembered(void)
{
    unsigned n = 0;

    membership_sweep(&upstream->membership);
    list_for_each (node, &upstream->membership.servers)
        n++;
    return n;
}

static struct upstream_server *pick(void)
{
    struct balancer_pick_state pick;
    struct upstream_server *server = NULL;

    balancer_begin(&pick, 0);
    ck_assert_int_eq(upstream_pick(upstream, &pick, &server), 0);
    return server;
}

/* A session at the server of this name. */
static struct upstream_server *enter(const char *name)
{
    struct upstream_server *server = find(name);

    ck_assert_ptr_nonnull(server);
    ck_assert_int_eq(endpoint_enter(&server->endpoint), 0);
    return server;
}

/* ---- sets ---- */

GROUP(membership, setup, teardown);

TEST(membership, only_literal_addresses_are_servers_before_a_lookup)
{
    open_group();
    ck_assert_str_eq(names(), "fixed");
}

TEST(membership, each_address_is_a_server_in_the_order_of_the_lines)
{
    open_group();
    ck_assert_int_eq(update(2, "31"), 1);
    ck_assert_int_eq(update(1, "2"), 1);
    ck_assert_str_eq(names(), "fixed one@127.0.0.1:1002 two@127.0.0.1:1001 two@127.0.0.1:1003");
}

TEST(membership, sessions_are_spread_over_the_servers_of_a_name)
{
    unsigned n[5] = {0};

    open_group();
    ck_assert_int_eq(update(1, "1234"), 1);
    for (unsigned i = 0; i < 50; i++) {
        const struct upstream_server *server = pick();

        n[server->position == 0 ? 0 : server->name[strlen(server->name) - 1] - '0']++;
    }
    for (unsigned i = 0; i < 5; i++)
        ck_assert_uint_eq(n[i], 10);
}

TEST(membership, same_addresses_in_another_order_change_nothing)
{
    const struct server_set *set;

    open_group();
    ck_assert_int_eq(update(1, "123"), 1);
    set = membership_now(&upstream->membership);
    ck_assert_int_eq(update(1, "312"), 0);
    ck_assert_ptr_eq(membership_now(&upstream->membership), set);
}

TEST(membership, changed_weights_and_priorities_apply)
{
    struct address list[2];
    struct membership_place places[2];
    struct upstream_server *server;

    open_group();
    for (unsigned i = 0; i < 2; i++) {
        sockets_loopback(&list[i], 1001 + i);
        places[i] = (struct membership_place){.list = &list[i], .n = 1, .weight = 1};
    }
    ck_assert_int_eq(update_places(1, places, 2), 1);
    server = find("one@127.0.0.1:1002");
    places[1].weight = 6;
    ck_assert_int_eq(update_places(1, places, 2), 1);
    ck_assert_ptr_eq(find("one@127.0.0.1:1002"), server);
    for (unsigned i = 0; i < 8; i++)
        (void)pick();
    ck_assert_uint_eq(endpoint_active(&server->endpoint), 6);
    places[1].level = 3;
    ck_assert_int_eq(update_places(1, places, 2), 1);
    ck_assert_int_eq(update_places(1, places, 2), 0);
    for (unsigned i = 0; i < 8; i++)
        (void)pick();
    ck_assert_uint_eq(endpoint_active(&server->endpoint), 6);
}

TEST(membership, weight_may_change_to_0_and_back)
{
    struct address at;
    struct membership_place place = {.list = &at, .n = 1, .weight = 1};
    struct upstream_server *server;

    open_group();
    sockets_loopback(&at, 1001);
    ck_assert_int_eq(update_places(1, &place, 1), 1);
    server = find("one@127.0.0.1:1001");
    place.weight = 0;
    ck_assert_int_eq(update_places(1, &place, 1), 1);
    ck_assert_ptr_eq(find("one@127.0.0.1:1001"), server);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_uint_eq(pick()->position, 0);
    place.weight = 1;
    ck_assert_int_eq(update_places(1, &place, 1), 1);
    for (unsigned i = 0; i < 6; i++)
        (void)pick();
    ck_assert_uint_eq(endpoint_active(&server->endpoint), 3);
}

TEST(membership, servers_of_a_line_of_weight_0_get_no_sessions_whatever_their_records_say)
{
    struct address at;
    struct membership_place place = {.list = &at, .n = 1, .weight = 7};

    lines[1].weight = 0;
    open_group();
    sockets_loopback(&at, 1001);
    ck_assert_int_eq(update_places(1, &place, 1), 1);
    ck_assert_int_eq(update_places(1, &place, 1), 0);
    ck_assert_ptr_nonnull(find("one@127.0.0.1:1001"));
    for (unsigned i = 0; i < 20; i++)
        ck_assert_uint_eq(pick()->position, 0);
}

/* 0: a host name; 1: a service. */
TEST_EACH(membership, disabled_name_is_one_server_without_an_address, 2)
{
    lines[1].names = _i == 0 ? UPSTREAM_NAME_EACH : UPSTREAM_SERVICE;
    lines[1].disabled = true;
    open_group();
    ck_assert_uint_eq(endpoint_load(&find("one")->endpoint), ENDPOINT_ABSENT);
    for (unsigned i = 0; i < 20; i++)
        ck_assert_uint_eq(pick()->position, 0);
}

TEST(membership, server_that_is_a_backup_by_its_priority_has_a_spare_pool)
{
    struct address at;
    struct membership_place place = {.list = &at, .n = 1, .weight = 1, .level = 1};

    conf.spare.keep = 1;
    lines[2].backup = true;
    open_group();
    sockets_loopback(&at, 1001);
    ck_assert_int_eq(update_places(1, &place, 1), 1);
    ck_assert_ptr_nonnull(find("one@127.0.0.1:1001")->spare);
    ck_assert_int_eq(update(2, "2"), 1);
    ck_assert_ptr_null(find("two@127.0.0.1:1002")->spare);
}

TEST(membership, a_backup_line_has_backups_only)
{
    lines[1].backup = true;
    open_group();
    ck_assert_int_eq(update(1, "12"), 1);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_uint_eq(pick()->position, 0);
    endpoint_set_flag(&find("fixed")->endpoint, ENDPOINT_DOWN);
    ck_assert_uint_eq(pick()->position, 1);
}

TEST(membership, a_line_is_found_by_its_id)
{
    open_group();
    ck_assert_str_eq(membership_find_line(&upstream->membership, "two")->conf.id, "two");
    ck_assert_ptr_null(membership_find_line(&upstream->membership, "tw"));
}

TEST(membership, a_line_that_is_no_longer_configured_changes_nothing)
{
    struct server_line *line;
    struct membership_place place = {.list = &literal, .n = 1, .weight = 1};

    open_group();
    ck_assert_int_eq(server_line_create(&line, &lines[1]), 0);
    ck_assert_int_eq(membership_update(&upstream->membership, line, &place, 1, NULL), -ESTALE);
    ck_assert_str_eq(names(), "fixed");
    server_line_release(line);
}

/* ---- those that go ---- */

TEST(membership, removed_server_gets_no_sessions_and_keeps_its_open_ones)
{
    struct upstream_server *old;

    open_group();
    ck_assert_int_eq(update(1, "12"), 1);
    old = enter("one@127.0.0.1:1001");
    ck_assert_int_eq(update(1, "2"), 1);
    ck_assert_str_eq(names(), "fixed one@127.0.0.1:1002");
    for (unsigned i = 0; i < 10; i++)
        ck_assert_ptr_ne(pick(), old);
    ck_assert_uint_eq(endpoint_load(&old->endpoint), ENDPOINT_ABSENT | 1);
    ck_assert_uint_eq(remembered(), 3);
    upstream_leave(upstream, old, UPSTREAM_FAILED); /* which ejects nobody any more */
    ck_assert(!ejection_some_out(&upstream->ejection));
    ck_assert_uint_eq(remembered(), 2);
}

TEST(membership, server_found_again_is_the_same_object_with_its_sessions)
{
    struct upstream_server *old;

    open_group();
    ck_assert_int_eq(update(1, "12"), 1);
    old = enter("one@127.0.0.1:1001");
    ck_assert_int_eq(update(1, "2"), 1);
    ck_assert_int_eq(update(1, "12"), 1);
    ck_assert_ptr_eq(find("one@127.0.0.1:1001"), old);
    ck_assert_uint_eq(endpoint_load(&old->endpoint), 1);
    ck_assert_uint_eq(remembered(), 3);
}

TEST(membership, reference_keeps_a_removed_server)
{
    struct upstream_server *old;

    open_group();
    ck_assert_int_eq(update(1, "12"), 1);
    old = find("one@127.0.0.1:1001");
    upstream_server_hold(old);
    ck_assert_int_eq(update(1, "2"), 1);
    ck_assert_uint_eq(remembered(), 3);
    ck_assert_str_eq(old->name, "one@127.0.0.1:1001");
    upstream_server_release(old);
    ck_assert_uint_eq(remembered(), 2);
}

TEST(membership, server_set_taken_by_a_reader_keeps_its_servers)
{
    struct server_set *set;

    open_group();
    ck_assert_int_eq(update(1, "12"), 1);
    set = membership_hold_set(&upstream->membership);
    ck_assert_int_eq(update(1, "3"), 1);
    ck_assert_int_eq(update(1, "4"), 1);
    ck_assert_uint_eq(remembered(), 5); /* in a set or not: the oldest one may have it */
    ck_assert_str_eq(set->servers[2]->name, "one@127.0.0.1:1002");
    membership_release_set(set);
    ck_assert_uint_eq(remembered(), 2);
}

TEST(membership, removed_server_does_not_count_as_ejected)
{
    struct upstream_server *bad;

    open_group();
    ck_assert_int_eq(update(1, "123"), 1);
    bad = enter("one@127.0.0.1:1001");
    upstream_leave(upstream, bad, UPSTREAM_FAILED);
    ck_assert_uint_eq(atomic_load(&upstream->ejection.n_out), 1);
    ck_assert_int_eq(update(1, "23"), 1);
    ck_assert_uint_eq(atomic_load(&upstream->ejection.n_out), 0);
}

TEST(membership, hundred_changes_leak_nothing)
{
    open_group();
    for (unsigned i = 0; i < 100; i++)
        ck_assert_int_eq(update(1 + i % 2, i % 4 < 2 ? "123" : "456"), 1);
    ck_assert_uint_eq(remembered(), 7);
    ck_assert(list_empty(&upstream->membership.replaced));
}

static unsigned left_alone;

/* A mark has changed: is there somebody to send a client to? */
static void look_for_one(struct endpoint_group *g)
{
    const struct server_set *set = membership_now(&upstream->membership);
    struct balancer_pick_state pick;
    struct endpoint *e;

    ck_assert_ptr_eq(g, &upstream->group);
    balancer_begin(&pick, 0);
    if (balancer_pick(set->balancer, &pick, &e) < 0)
        left_alone++;
    else
        endpoint_leave(e);
}

TEST(membership, server_added_and_removed_in_turn_is_always_in_a_list)
{
    conf.n_servers = 2;
    lines[0] = lines[1];
    open_group();
    ck_assert_int_eq(update(1, "1"), 1);
    upstream_server_hold(find("one@127.0.0.1:1001"));
    ck_assert_int_eq(update(1, "2"), 1);
    upstream_server_hold(find("one@127.0.0.1:1002"));
    upstream->group.changed = look_for_one;
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(update(1, i % 2 ? "2" : "1"), 1);
    ck_assert_uint_eq(left_alone, 0);
}

/* It was on its way out of the set when a session that had failed there let it out. */
TEST_EACH(membership, removed_server_ejected_late_is_not_ejected_when_found_again, 2)
{
    struct upstream_server *old;

    open_group();
    ck_assert_int_eq(update(1, "12"), 1);
    old = enter("one@127.0.0.1:1001");
    ck_assert_int_eq(update(1, "2"), 1);
    ck_assert_int_gt(
        ejection_failed(&upstream->ejection, &old->ejection, &old->endpoint, clock_now_ns(), true),
        0);
    if (_i == 0) {
        ck_assert_int_eq(update(1, "12"), 1);
        ck_assert_uint_eq(endpoint_load(&old->endpoint), 1);
    } else { /* or it takes no place from others at least */
        ck_assert_uint_eq(remembered(), 3);
    }
    ck_assert(!ejection_some_out(&upstream->ejection));
}

/* ---- those that come ---- */

TEST(membership, server_added_to_a_known_name_starts_slowly)
{
    conf.slow_start_ns = UNTIL_LIMIT_NS;
    open_group();
    ck_assert_int_eq(update(1, "1"), 1);
    ck_assert(!(endpoint_load(&find("one@127.0.0.1:1001")->endpoint) & ENDPOINT_WARMING));
    ck_assert_int_eq(update(1, "12"), 1);
    ck_assert(!(endpoint_load(&find("one@127.0.0.1:1001")->endpoint) & ENDPOINT_WARMING));
    ck_assert(endpoint_load(&find("one@127.0.0.1:1002")->endpoint) & ENDPOINT_WARMING);
}

TEST(membership, server_found_again_starts_slowly)
{
    struct upstream_server *old;

    conf.slow_start_ns = UNTIL_LIMIT_NS;
    open_group();
    ck_assert_int_eq(update(1, "12"), 1);
    old = enter("one@127.0.0.1:1001");
    ck_assert_int_eq(update(1, "2"), 1);
    ck_assert_int_eq(update(1, "12"), 1);
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
    open_group();
    upstream->membership.watch =
        (struct membership_watch){.came = on_came, .went = on_went, .cookie = &came};
    ck_assert_int_eq(update(1, "12"), 1);
    ck_assert_int_eq(update(1, "12"), 0);
    ck_assert_int_eq(update(1, "23"), 1);
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
        struct upstream_server *server = pick();
        struct endpoint_addresses *at = endpoint_hold_addresses(&server->endpoint);

        ck_assert_ptr_nonnull(at);
        ck_assert_uint_ge(strlen(server->name), 5);
        endpoint_release_addresses(at);
        upstream_leave(upstream, server, UPSTREAM_UNKNOWN);
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

    (void)update(1 + i % 2, places[i % ARRAY_LEN(places)]);
    membership_sweep(&upstream->membership);
}

static void *read_sets(void *arg)
{
    (void)arg;
    while (!atomic_load(&over)) {
        struct server_set *set = membership_hold_set(&upstream->membership);

        for (unsigned i = 0; i < set->n; i++)
            ck_assert_uint_ge(strlen(set->servers[i]->name), 5);
        membership_release_set(set);
    }
    return NULL;
}

TEST_EACH(membership, workers_pick_while_servers_change_and_all_servers_are_freed,
          BALANCER_FIRST + 1)
{
    struct loop_group_conf group = {
        .name = "work",
        .pool = 2,
        .n_loops = WORKERS,
        .loop = {.budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS}, .max_pending_tasks = 64}};
    struct loop *control = loop_runner_create();
    pthread_t threads[WORKERS + 1];

    conf.balance = (enum balancer_kind)_i;
    ck_assert_int_eq(loop_group_create(&workers, &group), 0);
    open_group();
    for (unsigned i = 0; i < WORKERS; i++)
        pthread_create(&threads[i], NULL, work, loop_group_at(workers, i));
    pthread_create(&threads[WORKERS], NULL, read_sets, NULL);
    for (unsigned i = 0; i < 200; i++)
        loop_runner_call(control, change, &i);
    atomic_store(&over, true);
    for (unsigned i = 0; i <= WORKERS; i++)
        pthread_join(threads[i], NULL);
    loop_group_stop(workers, 0, NS_PER_S);
    loop_runner_join_group(workers);
    loop_runner_stop(control);
    ck_assert_uint_eq(atomic_load(&upstream->group.load), 0);
    ck_assert_uint_eq(remembered(), membership_now(&upstream->membership)->n);
    loop_runner_destroy(control);
    loop_group_destroy(workers);
}
