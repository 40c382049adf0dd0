/*
 * upstream/upstream_change: another configuration while sessions run. What is in both stays as it
 * is, with all it has.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "engine/loop_group.h"
#include "support/fault.h"
#include "support/figures.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "upstream/server_line.h"
#include "upstream/upstream.h"
#include "upstream/upstream_change.h"

#define SERVERS 4

static struct address addresses[SERVERS + 1]; /* of the servers, and one more */
static struct upstream_server_conf servers[SERVERS], next_servers[SERVERS];
static struct upstream_conf conf, next;
static struct upstream *upstream;
static struct upstream_change *change;
static struct loop_group *workers;

static void setup(void)
{
    static const char *const ids[SERVERS] = {"a", "b", "c", "d"};

    log_lines_capture(LOG_LEVEL_NOTICE);
    for (unsigned i = 0; i <= SERVERS; i++)
        sockets_loopback(&addresses[i], 1 + i);
    conf = (struct upstream_conf){.name = "back",
                                  .servers = servers,
                                  .n_servers = 2,
                                  .ejection = {.failures = 1,
                                               .time_ns = UNTIL_LIMIT_NS,
                                               .time_max_ns = UNTIL_LIMIT_NS,
                                               .max_percent = 50}};
    for (unsigned i = 0; i < SERVERS; i++)
        servers[i] = (struct upstream_server_conf){.id = ids[i],
                                                   .address_text = "there",
                                                   .addresses = &addresses[i],
                                                   .n_addresses = 1,
                                                   .weight = 1};
}

/* A test changes `next`, and `next_servers`, before change_all(). */
static void open_group(void)
{
    ck_assert_int_eq(upstream_create(&upstream, &conf, NULL), 0);
    memcpy(next_servers, servers, sizeof(servers));
    next = conf;
    next.servers = next_servers;
}

static void teardown(void)
{
    upstream_destroy(upstream);
}

static void prepare(void)
{
    ck_assert_int_eq(upstream_change_prepare(&change, upstream, &next), 0);
}

static void change_all(void)
{
    prepare();
    upstream_change_commit(change);
}

static struct membership *members(void)
{
    return &upstream->membership;
}

static struct upstream_server *server_at(unsigned i)
{
    return membership_now(members())->servers[i];
}

static const char *names(void)
{
    static char text[512];
    const struct server_set *set = membership_now(members());
    size_t len = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < set->n; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i > 0 ? " " : "",
                                set->servers[i]->name);
    return text;
}

static unsigned remembered(void)
{
    unsigned n = 0;

    (void)membership_sweep(members());
    list_for_each (node, &members()->servers)
        n++;
    return n;
}

static struct upstream_server *pick(int error)
{
    struct balancer_pick_state state;
    struct upstream_server *server;
    int rc;

    balancer_begin(&state, 0);
    rc = upstream_pick(upstream, &state, &server);
    ck_assert_int_eq(rc, error);
    return rc == 0 ? server : NULL;
}

static uint32_t load(const struct upstream_server *server)
{
    return endpoint_load(&server->endpoint);
}

/* The servers of ${id} are at these ports, a digit each. */
static int update(const char *id, const char *text)
{
    struct address list[10];
    struct membership_place places[10];
    unsigned n = 0;

    for (; text[n] != '\0'; n++) {
        sockets_loopback(&list[n], 1000 + (unsigned)(text[n] - '0'));
        places[n] = (struct membership_place){.list = &list[n], .n = 1, .weight = 3};
    }
    return membership_update(members(), membership_find_line(members(), id), places, n, NULL);
}

static int give_places(const char *id, const char *text)
{
    struct address list[10];
    struct membership_place places[10];
    unsigned n = 0;
    int rc;

    for (; text[n] != '\0'; n++) {
        sockets_loopback(&list[n], 1000 + (unsigned)(text[n] - '0'));
        places[n] = (struct membership_place){.list = &list[n], .n = 1, .weight = 3};
    }
    rc = upstream_change_places(change, upstream_change_line(change, id), places, n);
    return rc == 0 ? upstream_change_build(change) : rc;
}

static unsigned n_came, n_went, n_changed;

static void on_came(void *cookie, struct upstream_server *server)
{
    (void)cookie;
    ck_assert_str_eq(server->name, "c");
    n_came++;
}

static void on_went(void *cookie, struct upstream_server *server)
{
    (void)cookie;
    ck_assert_str_eq(server->name, "b");
    n_went++;
}

static void on_changed(void *cookie, struct upstream_server *server)
{
    (void)cookie;
    ck_assert_str_eq(server->name, "a");
    ck_assert_uint_eq(server->conf->check_port, 99);
    n_changed++;
}

/* ---- servers ---- */

GROUP(change, setup, teardown);

TEST(change, unchanged_server_keeps_its_state_and_counters)
{
    struct upstream_server *a, *b;
    struct server_line *line;

    open_group();
    a = server_at(0);
    b = pick(0);
    line = membership_find_line(members(), "a");
    counters_began(&a->counters);
    (void)endpoint_set_flag(&a->endpoint, ENDPOINT_DOWN);
    change_all();
    ck_assert_str_eq(names(), "a b");
    ck_assert_ptr_eq(server_at(0), a);
    ck_assert_ptr_eq(membership_find_line(members(), "a"), line);
    ck_assert_uint_eq(load(a) & ~ENDPOINT_COUNT_MASK, ENDPOINT_DOWN);
    ck_assert_uint_eq(load(b) & ENDPOINT_COUNT_MASK, 1);
    ck_assert_uint_eq(atomic_load(&a->counters.began), 1);
    upstream_leave(upstream, b, UPSTREAM_UNKNOWN);
}

TEST(change, an_ejected_server_stays_ejected_for_its_time)
{
    struct upstream_server *a;

    open_group();
    a = pick(0);
    upstream_leave(upstream, a, UPSTREAM_FAILED);
    ck_assert_uint_eq(load(a), ENDPOINT_EJECTED);
    next_servers[a->position].weight = 5;
    change_all();
    ck_assert_uint_eq(load(a), ENDPOINT_EJECTED);
    ck_assert(ejection_some_out(&upstream->ejection));
}

TEST(change, changed_weights_apply)
{
    unsigned n[2] = {0};

    open_group();
    next_servers[1].weight = 3;
    change_all();
    for (unsigned i = 0; i < 8; i++)
        n[pick(0)->position]++;
    ck_assert_uint_eq(n[0], 2);
    ck_assert_uint_eq(n[1], 6);
    ck_assert_uint_eq(atomic_load(&server_at(1)->endpoint.weight), 3);
    ck_assert_uint_eq(server_at(1)->conf->weight, 3);
}

TEST(change, servers_follow_the_order_of_the_lines)
{
    open_group();
    next.balance = BALANCER_FIRST;
    next.n_servers = 3;
    next_servers[0] = servers[2];
    next_servers[1] = servers[1];
    next_servers[2] = servers[0];
    change_all();
    ck_assert_str_eq(names(), "c b a");
    ck_assert_str_eq(pick(0)->name, "c");
    ck_assert_str_eq(pick(0)->name, "c");
}

TEST(change, removed_server_keeps_its_sessions_and_is_freed_after_them)
{
    struct upstream_server *b;

    open_group();
    next_servers[0].weight = 0;
    change_all();
    b = pick(0);
    ck_assert_str_eq(b->name, "b");
    next_servers[0].weight = 1;
    next.n_servers = 1;
    change_all();
    ck_assert_str_eq(names(), "a");
    ck_assert_uint_eq(load(b), ENDPOINT_ABSENT | 1);
    ck_assert_uint_eq(remembered(), 2);
    ck_assert_str_eq(b->conf->id, "b");
    upstream_leave(upstream, b, UPSTREAM_UNKNOWN);
    ck_assert_uint_eq(remembered(), 1);
    ck_assert(!upstream_sweep_unused(upstream));
}

TEST(change, server_added_again_has_its_open_sessions)
{
    struct upstream_server *b;

    open_group();
    next_servers[0].weight = 0;
    change_all();
    b = pick(0);
    next.n_servers = 1;
    change_all();
    members()->watch = (struct membership_watch){.changed = on_changed};
    next.n_servers = 2;
    next_servers[1].weight = 7;
    change_all(); /* it has come: that its line changed is not told, too */
    ck_assert_ptr_eq(server_at(1), b);
    ck_assert_uint_eq(load(b), 1);
    ck_assert_uint_eq(b->conf->weight, 7);
    upstream_leave(upstream, b, UPSTREAM_UNKNOWN);
}

TEST(change, server_with_another_address_is_a_new_server)
{
    struct upstream_server *a;

    open_group();
    a = server_at(0);
    upstream_server_hold(a);
    next_servers[0].addresses = &addresses[SERVERS];
    change_all();
    ck_assert_str_eq(names(), "a b");
    ck_assert_ptr_ne(server_at(0), a);
    ck_assert_uint_eq(load(a), ENDPOINT_ABSENT);
    ck_assert_uint_eq(load(server_at(0)), 0);
    upstream_server_release(a);
    ck_assert_uint_eq(remembered(), 2);
}

TEST(change, disabled_server_is_the_same_object_without_new_sessions)
{
    struct upstream_server *a;

    open_group();
    a = server_at(0);
    next_servers[0].disabled = true;
    change_all();
    ck_assert_ptr_eq(server_at(0), a);
    ck_assert(atomic_load(&a->is_disabled));
    for (unsigned i = 0; i < 4; i++)
        ck_assert_str_eq(pick(0)->name, "b");
    next_servers[0].disabled = false;
    change_all();
    ck_assert_ptr_eq(server_at(0), a);
    ck_assert(!atomic_load(&a->is_disabled));
    (void)pick(0);
    ck_assert_uint_gt(endpoint_active(&a->endpoint) + 1, 0);
}

TEST(change, server_that_becomes_a_backup_gets_no_sessions_beside_others)
{
    open_group();
    next_servers[0].backup = true;
    change_all();
    for (unsigned i = 0; i < 4; i++)
        ck_assert_str_eq(pick(0)->name, "b");
}

TEST(change, new_server_starts_down_if_it_must_be_checked_first)
{
    open_group();
    next.n_servers = 3;
    next.checks.kind = UPSTREAM_CHECK_TCP;
    next.checks.health.initial = HEALTH_STARTS_DOWN;
    change_all();
    ck_assert_uint_eq(load(server_at(0)), 0);
    ck_assert_uint_eq(load(server_at(2)), ENDPOINT_DOWN);
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

    open_group();
    next.n_servers = 3;
    next.checks.kind = UPSTREAM_CHECK_TCP;
    next.checks.health.initial = HEALTH_STARTS_DOWN;
    prepare();
    ck_assert_int_eq(upstream_change_each_new(change, note_new, new), 0);
    ck_assert_str_eq(new, "cc");
    upstream_change_commit(change);
}

/* 0: it was disabled; 1: it was checked, but had weight 0. */
TEST_EACH(change, server_enabled_or_given_a_weight_by_a_reload_starts_slowly, 2)
{
    servers[1].disabled = _i == 0;
    servers[1].weight = _i == 0;
    conf.checks.kind = UPSTREAM_CHECK_TCP;
    conf.checks.health.initial = HEALTH_STARTS_DOWN;
    conf.slow_start_ns = UNTIL_LIMIT_NS;
    open_group();
    for (unsigned i = 0; i < 2; i++)
        (void)endpoint_clear_flag(&server_at(i)->endpoint, ENDPOINT_DOWN);
    next_servers[1].disabled = false;
    next_servers[1].weight = 1;
    change_all();
    ck_assert_uint_eq(load(server_at(0)), 0);
    ck_assert_uint_eq(load(server_at(1)), ENDPOINT_WARMING | (_i == 0 ? ENDPOINT_DOWN : 0));
}

TEST(change, a_new_server_starts_slowly)
{
    open_group();
    next.n_servers = 3;
    next.slow_start_ns = UNTIL_LIMIT_NS;
    change_all();
    ck_assert_uint_eq(load(server_at(0)), 0);
    ck_assert_uint_eq(load(server_at(2)), ENDPOINT_WARMING);
}

/* ---- names ---- */

TEST(change, unchanged_name_keeps_its_servers)
{
    struct upstream_server *one;

    servers[1].names = UPSTREAM_NAME_EACH;
    open_group();
    ck_assert_int_eq(update("b", "12"), 1);
    one = server_at(1);
    next_servers[1].weight = 7;
    change_all();
    ck_assert_str_eq(names(), "a b@127.0.0.1:1001 b@127.0.0.1:1002");
    ck_assert_ptr_eq(server_at(1), one);
    ck_assert_uint_eq(atomic_load(&one->endpoint.weight), 7);
    ck_assert_int_eq(update("b", "23"), 1);
    ck_assert_str_eq(names(), "a b@127.0.0.1:1002 b@127.0.0.1:1003");
}

TEST(change, the_servers_of_a_service_keep_their_weights)
{
    servers[1].names = UPSTREAM_SERVICE;
    open_group();
    ck_assert_int_eq(update("b", "1"), 1);
    next_servers[1].max_connections = 9;
    change_all();
    ck_assert_uint_eq(atomic_load(&server_at(1)->endpoint.weight), 3);
    ck_assert_uint_eq(atomic_load(&server_at(1)->endpoint.max_connections), 9);
}

TEST(change, changed_name_has_no_servers_until_it_is_resolved)
{
    servers[1].names = UPSTREAM_NAME_EACH;
    open_group();
    ck_assert_int_eq(update("b", "12"), 1);
    next_servers[1].address_text = "elsewhere";
    change_all();
    ck_assert_str_eq(names(), "a");
    ck_assert_int_eq(update("b", "3"), 1);
    ck_assert_str_eq(names(), "a b@127.0.0.1:1003");
}

TEST(change, servers_of_a_changed_name_are_found_again_by_address)
{
    struct upstream_server *one;

    servers[1].names = UPSTREAM_NAME_EACH;
    open_group();
    ck_assert_int_eq(update("b", "12"), 1);
    one = server_at(1);
    next_servers[1].address_text = "elsewhere";
    prepare();
    ck_assert_int_eq(give_places("b", "31"), 0);
    ck_assert_int_eq(give_places("b", "4"), 0); /* it has some now */
    upstream_change_commit(change);
    ck_assert_str_eq(names(), "a b@127.0.0.1:1001 b@127.0.0.1:1003");
    ck_assert_ptr_eq(server_at(1), one);
    ck_assert_str_eq(one->conf->address_text, "elsewhere");
    ck_assert_uint_eq(remembered(), 3);
}

TEST(change, single_server_of_a_name_keeps_its_addresses)
{
    struct upstream_server *b;

    servers[1].names = UPSTREAM_NAME_ONE;
    servers[1].n_addresses = 0;
    open_group();
    b = server_at(1);
    ck_assert_int_eq(upstream_set_addresses(upstream, b, &addresses[1], 1), 1);
    next_servers[1].max_connections = 3;
    change_all();
    ck_assert_ptr_eq(server_at(1), b);
    ck_assert_uint_eq(load(b), 0);
}

TEST(change, single_server_of_a_new_name_may_start_with_addresses)
{
    open_group();
    next.n_servers = 3;
    next_servers[2].names = UPSTREAM_NAME_ONE;
    next_servers[2].n_addresses = 0;
    prepare();
    ck_assert_int_eq(give_places("c", "7"), 0);
    ck_assert_ptr_null(upstream_change_line(change, "d"));
    upstream_change_commit(change);
    ck_assert_uint_eq(load(server_at(2)), 0);
    next_servers[2].address_text = "elsewhere";
    change_all();
    ck_assert_uint_eq(load(server_at(2)), ENDPOINT_ABSENT);
}

TEST(change, answers_are_held_while_a_change_is_prepared)
{
    struct server_line *line;
    struct membership_place place = {.list = &addresses[SERVERS], .n = 1, .weight = 1};

    servers[1].names = UPSTREAM_NAME_EACH;
    open_group();
    line = server_line_hold(membership_find_line(members(), "b"));
    next_servers[1].weight = 2;
    prepare();
    ck_assert_int_eq(update("b", "1"), -EBUSY);
    ck_assert_int_eq(upstream_change_prepare(&change, upstream, &next), -EBUSY);
    upstream_change_commit(change);
    ck_assert_int_eq(membership_update(members(), line, &place, 1, NULL), -ESTALE);
    ck_assert_int_eq(update("b", "1"), 1);
    server_line_release(line);
}

TEST(change, watch_is_notified_once_of_each_server)
{
    open_group();
    members()->watch =
        (struct membership_watch){.came = on_came, .went = on_went, .changed = on_changed};
    next_servers[0].check_port = 99;
    next_servers[1] = servers[2];
    change_all();
    change_all();
    ck_assert_uint_eq(n_came, 1);
    ck_assert_uint_eq(n_went, 1);
    ck_assert_uint_eq(n_changed, 1);
}

/* ---- the upstream ---- */

TEST(change, changed_limits_of_the_upstream_apply)
{
    open_group();
    next.queue_length = 7;
    next.queue_timeout_ns = 77;
    next.retry_budget = 50;
    next.ejection.failures = 0;
    next_servers[0].max_connections = 5;
    ck_assert(!atomic_load(&upstream->bounded));
    change_all();
    ck_assert_uint_eq(atomic_load(&upstream->waiting.max), 7);
    ck_assert_int_eq(atomic_load(&upstream->waiting.timeout_ns), 77);
    ck_assert_uint_eq(atomic_load(&upstream->retry_budget.percent), 50);
    ck_assert(atomic_load(&upstream->bounded));
    upstream_leave(upstream, pick(0), UPSTREAM_FAILED);
    ck_assert(!ejection_some_out(&upstream->ejection));
}

TEST(change, changed_limit_counts_open_sessions)
{
    struct upstream_server *a;

    conf.n_servers = 1;
    open_group();
    a = pick(0);
    (void)pick(0);
    next_servers[0].max_connections = 2;
    change_all();
    (void)pick(-EBUSY);
    upstream_leave(upstream, a, UPSTREAM_UNKNOWN);
    (void)pick(0);
    next_servers[0].max_connections = 0;
    change_all();
    (void)pick(0);
}

struct waiting {
    struct wait_ticket *ticket;
    struct balancer_pick_state pick;
    struct endpoint *got;
    atomic_uint done;
};

static void on_done(void *cookie, struct endpoint *e, int error)
{
    struct waiting *w = cookie;

    (void)error;
    w->got = e;
    atomic_fetch_add(&w->done, 1);
}

static void join(void *arg)
{
    struct waiting *w = arg;

    balancer_begin(&w->pick, 1);
    ck_assert_int_eq(wait_queue_join(&upstream->waiting, &w->ticket, &w->pick, on_done, w), 0);
}

/* 0: another server; 1: a higher limit; 2: no limit. */
TEST_EACH(change, queued_session_gets_a_server_that_a_change_adds_or_raises, 3)
{
    struct loop *loop = loop_runner_create();
    struct waiting waiting = {.done = 0};

    conf.n_servers = 1;
    conf.queue_length = 10;
    conf.queue_timeout_ns = UNTIL_LIMIT_NS;
    servers[0].max_connections = 1;
    open_group();
    (void)pick(0);
    loop_runner_call(loop, join, &waiting);
    ck_assert_uint_eq(wait_queue_length(&upstream->waiting), 1);
    next.n_servers = _i == 0 ? 2 : 1;
    next_servers[0].max_connections = 1 + (unsigned)_i;
    if (_i == 2)
        next_servers[0].max_connections = 0;
    change_all();
    UNTIL(atomic_load(&waiting.done) == 1);
    ck_assert_ptr_eq(waiting.got, &server_at(_i == 0)->endpoint);
    loop_runner_destroy(loop);
}

/* A worker that sleeps: a grace period waits for it, a session does not. */
TEST(change, queued_session_does_not_wait_for_the_grace_period)
{
    struct loop_group_conf group = {
        .name = "work",
        .pool = 2,
        .n_loops = 2,
        .loop = {.budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS}, .max_pending_tasks = 64}};
    struct waiting waiting = {.done = 0};
    struct server_set *set;

    conf.n_servers = 1;
    conf.queue_length = 10;
    conf.queue_timeout_ns = UNTIL_LIMIT_NS;
    servers[0].max_connections = 1;
    ck_assert_int_eq(loop_group_create(&workers, &group), 0);
    for (unsigned i = 0; i < 2; i++)
        loop_runner_turn(loop_group_at(workers, i));
    ck_assert_int_eq(upstream_create(&upstream, &conf, workers), 0);
    next = conf;
    (void)pick(0);
    loop_runner_call(loop_group_at(workers, 0), join, &waiting);
    set = membership_now(members());
    next.n_servers = 2;
    change_all();
    UNTIL(atomic_load(&waiting.done) == 1);
    ck_assert(!atomic_load(&set->unseen));
    loop_group_stop(workers, 0, NS_PER_S);
    loop_runner_join_group(workers);
    ck_assert(atomic_load(&set->unseen));
    loop_group_destroy(workers);
}

TEST(change, memory_of_both_configurations_is_freed)
{
    struct arena *memory[2];

    for (unsigned i = 0; i < 2; i++)
        ck_assert_int_eq(arena_create(&memory[i]), 0);
    conf.memory = memory[0];
    conf.name = arena_text(memory[0], "back", 4);
    open_group();
    arena_release(memory[0]);
    next.memory = memory[1];
    change_all();
    arena_release(memory[1]);
    ck_assert_ptr_eq(atomic_load(&upstream->conf)->connect.memory, memory[1]);
    ck_assert_str_eq(upstream->name, "back");
}

TEST(change, cancelled_change_changes_nothing)
{
    const struct server_set *set;

    open_group();
    set = membership_now(members());
    next.n_servers = 4;
    next_servers[0].weight = 9;
    next_servers[1].addresses = &addresses[SERVERS];
    prepare();
    upstream_change_cancel(change);
    upstream_change_cancel(NULL);
    ck_assert_ptr_eq(membership_now(members()), set);
    ck_assert_ptr_eq(atomic_load(&upstream->conf), &conf);
    ck_assert_uint_eq(atomic_load(&server_at(0)->endpoint.weight), 1);
    ck_assert_uint_eq(remembered(), 2);
    change_all();
    ck_assert_str_eq(names(), "a b c d");
}

static int attempt(void *cookie)
{
    int rc;

    (void)cookie;
    rc = upstream_change_prepare(&change, upstream, &next);
    if (rc == 0 && give_places("d", "123") < 0)
        rc = -ENOMEM;
    else if (rc < 0)
        return rc;
    upstream_change_cancel(change);
    return rc;
}

TEST(change, failed_allocation_changes_nothing)
{
    const struct server_set *set;
    unsigned allocations;

    open_group();
    set = membership_now(members());
    next.n_servers = 4;
    next_servers[1].addresses = &addresses[SERVERS];
    next_servers[3].names = UPSTREAM_NAME_EACH;
    next_servers[3].n_addresses = 0;
    allocations = fault_each_allocation(attempt, NULL);
    ck_assert_uint_gt(allocations, 20);
    ck_assert_ptr_eq(membership_now(members()), set);
    ck_assert_uint_eq(remembered(), 2);
    change_all();
    ck_assert_str_eq(names(), "a b c");
}

/* ---- while it is used ---- */

#define WORKERS 3
#define CHANGES 200
#define AT_ONCE 4

static atomic_bool over;

/* A session of a worker: it picks, perhaps waits, stays for some turns and leaves. */
struct client {
    struct balancer_pick_state pick;
    struct wait_ticket *ticket;
    struct upstream_server *at;
};

static struct client clients[WORKERS][AT_ONCE];

static void client_served(void *cookie, struct endpoint *e, int error)
{
    struct client *c = cookie;

    ck_assert(e || error < 0);
    c->ticket = NULL;
    c->at = e ? upstream_server_of(e) : NULL;
}

static void client_step(struct client *c)
{
    if (c->ticket)
        return;
    if (c->at) {
        ck_assert_uint_eq(strlen(c->at->conf->id), 1);
        upstream_leave(upstream, c->at, UPSTREAM_UNKNOWN);
        c->at = NULL;
        return;
    }
    balancer_begin(&c->pick, 0);
    if (upstream_pick(upstream, &c->pick, &c->at) == 0) {
        struct endpoint_addresses *at = endpoint_hold_addresses(&c->at->endpoint);

        ck_assert_ptr_nonnull(at);
        endpoint_release_addresses(at);
    } else {
        c->at = NULL;
        if (wait_queue_join(&upstream->waiting, &c->ticket, &c->pick, client_served, c) < 0)
            c->ticket = NULL;
    }
    ck_assert_str_eq(atomic_load(&upstream->conf)->name, "back");
}

static void step_all(void *arg)
{
    struct client *list = arg;

    for (unsigned i = 0; i < AT_ONCE; i++)
        client_step(&list[i]);
}

static void end_all(void *arg)
{
    struct client *list = arg;

    for (unsigned i = 0; i < AT_ONCE; i++)
        if (list[i].ticket)
            wait_queue_leave(list[i].ticket);
        else if (list[i].at)
            upstream_leave(upstream, list[i].at, UPSTREAM_UNKNOWN);
}

static void *work(void *arg)
{
    unsigned i = (unsigned)(uintptr_t)arg;

    while (!atomic_load(&over))
        loop_runner_call(loop_group_at(workers, i), step_all, clients[i]);
    loop_runner_call(loop_group_at(workers, i), end_all, clients[i]);
    return NULL;
}

static void *read_statistics(void *arg)
{
    (void)arg;
    while (!atomic_load(&over))
        figures_log_upstream(upstream);
    return NULL;
}

/* Each change is another configuration, in its own memory. */
static void change_some(void *arg)
{
    unsigned n = *(unsigned *)arg;
    struct upstream_conf other = conf;
    struct upstream_server_conf *list;

    ck_assert_int_eq(arena_create(&other.memory), 0);
    list = arena_alloc(other.memory, SERVERS, sizeof(*list));
    memcpy(list, servers, SERVERS * sizeof(*list));
    other.name = arena_text(other.memory, "back", 4);
    other.servers = list;
    other.n_servers = 1 + n % SERVERS;
    other.queue_length = 1 + n % 7;
    other.balance = (enum balancer_kind)(n % (BALANCER_FIRST + 1));
    list[0].addresses = &addresses[n % 3 == 0 ? SERVERS : 0];
    list[0].max_connections = n % 3;
    list[1].weight = 1 + n % 5;
    list[2].disabled = n % 4 == 3;
    next = other;
    prepare();
    if (n % 5 == 4)
        upstream_change_cancel(change);
    else
        upstream_change_commit(change);
    arena_release(other.memory);
    (void)upstream_sweep_unused(upstream);
}

TEST(change, workers_pick_and_wait_during_changes)
{
    struct loop_group_conf group = {
        .name = "work",
        .pool = 2,
        .n_loops = WORKERS,
        .loop = {.budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS}, .max_pending_tasks = 64}};
    struct loop *control = loop_runner_create();
    pthread_t threads[WORKERS + 1];

    log_lines_capture(LOG_LEVEL_ERROR); /* there are more lines than are kept */
    conf.queue_length = 5;
    conf.queue_timeout_ns = UNTIL_LIMIT_NS;
    servers[0].max_connections = 1;
    ck_assert_int_eq(loop_group_create(&workers, &group), 0);
    ck_assert_int_eq(upstream_create(&upstream, &conf, workers), 0);
    for (uintptr_t i = 0; i < WORKERS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    pthread_create(&threads[WORKERS], NULL, read_statistics, NULL);
    for (unsigned i = 0; i < CHANGES; i++)
        loop_runner_call(control, change_some, &i);
    atomic_store(&over, true);
    for (unsigned i = 0; i <= WORKERS; i++)
        pthread_join(threads[i], NULL);
    loop_group_stop(workers, 0, NS_PER_S);
    loop_runner_join_group(workers);
    loop_runner_stop(control);
    ck_assert_uint_eq(atomic_load(&upstream->group.load), 0);
    ck_assert_uint_eq(remembered(), membership_now(members())->n);
    ck_assert_uint_eq(ref_count(&upstream->references), 1);
    ck_assert(wait_queue_is_idle(&upstream->waiting));
    loop_runner_destroy(control);
    loop_group_destroy(workers);
}
