/*
 * upstream/upstream: the group as configured, who is sent where, and what comes of what became of
 * them.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "support/figures.h"
#include "support/log_lines.h"
#include "support/loop_runner.h"
#include "support/sockets.h"
#include "support/suite.h"
#include "support/until.h"
#include "upstream/upstream.h"

#define SERVERS 4

static struct address address;
static struct upstream_server_conf servers[SERVERS];
static struct upstream_conf conf;
static struct upstream *upstream;

static struct upstream_server *server_at(unsigned i)
{
    return membership_now(&upstream->membership)->servers[i];
}

static void setup(void)
{
    static const char *const ids[SERVERS] = {"a", "b", "c", "d"};

    log_lines_capture(LOG_LEVEL_INFO);
    sockets_loopback(&address, 7);
    conf = (struct upstream_conf){.name = "back",
                                  .servers = servers,
                                  .ejection = {.failures = 3,
                                               .time_ns = 200 * NS_PER_MS,
                                               .time_max_ns = 60 * NS_PER_S,
                                               .max_percent = 50}};
    for (unsigned i = 0; i < SERVERS; i++)
        servers[i] = (struct upstream_server_conf){.id = ids[i],
                                                   .address_text = "there",
                                                   .addresses = &address,
                                                   .n_addresses = 1,
                                                   .weight = 1};
}

static void open_group(unsigned n)
{
    conf.n_servers = n;
    ck_assert_int_eq(upstream_create(&upstream, &conf, NULL), 0);
}

static void teardown(void)
{
    upstream_destroy(upstream);
}

static uint32_t active(unsigned i)
{
    return endpoint_active(&server_at(i)->endpoint);
}

static uint32_t active_in_all(void)
{
    return atomic_load(&upstream->group.load);
}

/* The server of a new session, NULL if there is none for the reason ${error}. */
static struct upstream_server *pick(int error)
{
    struct upstream_server *server;
    struct balancer_pick_state pick;
    int rc;

    balancer_begin(&pick, 1);
    rc = upstream_pick(upstream, &pick, &server);
    ck_assert_int_eq(rc, error);
    return rc == 0 ? server : NULL;
}

/* A session that was sent to server ${i}, in whatever way. */
static void visit(unsigned i, enum upstream_outcome outcome)
{
    ck_assert_int_eq(endpoint_enter(&server_at(i)->endpoint), 0);
    upstream_leave(upstream, server_at(i), outcome);
}

static bool is_out(unsigned i)
{
    return (endpoint_load(&server_at(i)->endpoint) & ENDPOINT_EJECTED) != 0;
}

/* ---- the group ---- */

GROUP(upstream, setup, teardown);

TEST(upstream, servers_are_in_the_order_of_the_configuration)
{
    servers[1].weight = 2;
    servers[2].backup = true;
    servers[3].max_connections = 9;
    open_group(4);
    ck_assert_ptr_eq(upstream->conf, &conf);
    for (unsigned i = 0; i < 4; i++) {
        const struct endpoint *e = &server_at(i)->endpoint;

        ck_assert_str_eq(server_at(i)->conf->id, servers[i].id);
        ck_assert_str_eq(e->name, servers[i].id);
        ck_assert_uint_eq(e->weight, i == 1 ? 2 : 1);
        ck_assert_int_eq(e->level, i == 2 ? BALANCER_LEVELS - 1 : 0);
        ck_assert_uint_eq(e->max_connections, i == 3 ? 9 : 0);
        ck_assert_uint_eq(endpoint_load(e), 0);
    }
}

TEST(upstream, servers_without_sessions_are_logged_once)
{
    servers[1].weight = 0;
    servers[2].disabled = true;
    open_group(4);
    upstream_log_unused(upstream);
    EXPECT_LOG_LINES("upstream back: server b: gets no connections: weight=0", 1);
    EXPECT_LOG_LINES("upstream back: server c: gets no connections: disabled", 1);
    EXPECT_LOG_LINES("gets no connections", 2);
    ck_assert_uint_eq(membership_now(&upstream->membership)->n, 4);
    ck_assert_uint_eq(membership_now(&upstream->membership)->n_used, 2);
    figures_log_upstream(upstream);
    EXPECT_LOG_LINES("stats server back/a state=up", 1);
    EXPECT_LOG_LINES("stats server back/b state=drained", 1);
    EXPECT_LOG_LINES("stats server back/c state=disabled", 1);
}

/* One of four that get sessions would be 25 %, and the last that is left is never ejected. */
TEST(upstream, servers_without_sessions_do_not_count_for_ejection)
{
    servers[1].weight = 0;
    servers[2].disabled = true;
    servers[3].weight = 0;
    open_group(4);
    for (unsigned i = 0; i < 5; i++)
        visit(0, UPSTREAM_FAILED);
    ck_assert(!is_out(0));
    ck_assert_uint_eq(atomic_load(&upstream->ejection.n_endpoints), 1);
}

TEST(upstream, hash_of_a_server_by_its_id_is_the_same_after_a_restart)
{
    uint64_t hashes[2];

    open_group(2);
    for (unsigned i = 0; i < 2; i++)
        hashes[i] = server_at(i)->endpoint.hash;
    ck_assert_uint_ne(hashes[0], hashes[1]);
    upstream_destroy(upstream);
    servers[0].id = "b"; /* in another place, and elsewhere */
    servers[1].id = "a";
    servers[1].names = UPSTREAM_NAME_ONE;
    servers[1].n_addresses = 0;
    open_group(2);
    ck_assert_uint_eq(server_at(0)->endpoint.hash, hashes[1]);
    ck_assert_uint_eq(server_at(1)->endpoint.hash, hashes[0]);
}

TEST(upstream, server_given_by_name_is_picked_when_its_addresses_are_set)
{
    servers[0].names = UPSTREAM_NAME_ONE;
    servers[0].n_addresses = 0;
    open_group(1);
    ck_assert_ptr_null(endpoint_hold_addresses(&server_at(0)->endpoint));
    pick(-ENOENT);
    ck_assert_int_eq(upstream_set_addresses(upstream, server_at(0), &address, 1), 1);
    upstream_leave(upstream, pick(0), UPSTREAM_UNKNOWN);
    ck_assert_int_eq(upstream_set_addresses(upstream, server_at(0), &address, 1), 0);
}

/* ---- sessions ---- */

TEST(upstream, session_counts_at_its_server_until_it_leaves)
{
    struct upstream_server *first, *second;

    open_group(2);
    first = pick(0);
    second = pick(0);
    ck_assert_ptr_ne(first, second);
    ck_assert_uint_eq(active(0), 1);
    ck_assert_uint_eq(active(1), 1);
    ck_assert_uint_eq(active_in_all(), 2);
    upstream_leave(upstream, first, UPSTREAM_WORKED);
    upstream_leave(upstream, second, UPSTREAM_FAILED);
    ck_assert_uint_eq(active(0) + active(1), 0);
    ck_assert_uint_eq(active_in_all(), 0);
}

TEST(upstream, session_does_not_pick_the_same_server_twice)
{
    struct upstream_server *server[3], *none;
    struct balancer_pick_state pick;

    open_group(3);
    balancer_begin(&pick, 1);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(upstream_pick(upstream, &pick, &server[i]), 0);
        for (unsigned j = 0; j < i; j++)
            ck_assert_ptr_ne(server[i], server[j]);
    }
    ck_assert_int_eq(upstream_pick(upstream, &pick, &none), -ENOENT);
    for (unsigned i = 0; i < 3; i++)
        upstream_leave(upstream, server[i], UPSTREAM_UNKNOWN);
}

TEST(upstream, full_server_gets_no_session_until_one_leaves)
{
    struct upstream_server *server[2];

    servers[0].max_connections = 2;
    open_group(1);
    server[0] = pick(0);
    server[1] = pick(0);
    pick(-EBUSY);
    ck_assert_uint_eq(active(0), 2);
    upstream_leave(upstream, server[0], UPSTREAM_WORKED);
    server[0] = pick(0);
    for (unsigned i = 0; i < 2; i++)
        upstream_leave(upstream, server[i], UPSTREAM_WORKED);
    ck_assert_uint_eq(active_in_all(), 0);
}

/* ---- what becomes of them ---- */

TEST(upstream, server_with_consecutive_failures_is_ejected)
{
    open_group(2);
    visit(0, UPSTREAM_FAILED);
    visit(0, UPSTREAM_FAILED);
    ck_assert(!is_out(0));
    visit(0, UPSTREAM_FAILED);
    ck_assert(is_out(0));
    ck_assert_uint_eq(
        log_lines_with(
            "upstream back: server a: ejected for 0.2 s: connections failed in a row: 3"),
        1);
    EXPECT_LOG_LINES("", 1);
}

TEST(upstream, success_restarts_the_count_of_failures_and_an_unknown_outcome_does_not)
{
    open_group(2);
    for (int i = 0; i < 10; i++) {
        visit(0, UPSTREAM_FAILED);
        visit(0, UPSTREAM_FAILED);
        visit(0, UPSTREAM_WORKED);
    }
    ck_assert(!is_out(0));
    visit(0, UPSTREAM_FAILED);
    visit(0, UPSTREAM_UNKNOWN);
    visit(0, UPSTREAM_FAILED);
    visit(0, UPSTREAM_UNKNOWN);
    ck_assert(!is_out(0));
    visit(0, UPSTREAM_FAILED);
    ck_assert(is_out(0));
}

TEST(upstream, one_of_two_failing_servers_is_ejected_and_the_other_gets_all_sessions)
{
    open_group(2);
    for (int i = 0; i < 10; i++) {
        visit(0, UPSTREAM_FAILED);
        visit(1, UPSTREAM_FAILED);
    }
    ck_assert(is_out(0));
    ck_assert(!is_out(1));
    for (int i = 0; i < 10; i++) {
        struct upstream_server *server = pick(0);

        if (server == server_at(0)) /* its time is over: on a busy machine it may be */
            EXPECT_LOG_LINES("ejection over", 1);
        upstream_leave(upstream, server, UPSTREAM_UNKNOWN);
    }
}

TEST(upstream, log_line_has_the_number_of_failures_and_not_the_threshold)
{
    open_group(2);
    (void)endpoint_set_flag(&server_at(1)->endpoint, ENDPOINT_DOWN);
    for (int i = 0; i < 4; i++)
        visit(0, UPSTREAM_FAILED);
    ck_assert(!is_out(0)); /* there is no other */
    (void)endpoint_clear_flag(&server_at(1)->endpoint, ENDPOINT_DOWN);
    visit(0, UPSTREAM_FAILED);
    EXPECT_LOG_LINES("server a: ejected for 0.2 s: connections failed in a row: 5", 1);
}

TEST(upstream, single_server_is_never_ejected)
{
    conf.ejection.max_percent = 100;
    open_group(1);
    for (int i = 0; i < 10; i++)
        visit(0, UPSTREAM_FAILED);
    upstream_leave(upstream, pick(0), UPSTREAM_UNKNOWN);
    ck_assert_uint_eq(log_lines_with(""), 0);
}

TEST(upstream, failure_count_of_zero_disables_ejection)
{
    conf.ejection.failures = 0;
    open_group(2);
    for (int i = 0; i < 10; i++)
        visit(0, UPSTREAM_FAILED);
    ck_assert(!is_out(0));
    ck_assert_uint_eq(log_lines_with(""), 0);
}

TEST(upstream, server_is_picked_again_after_its_ejection_and_logged_once)
{
    int64_t out_at_ns = clock_now_ns();
    struct upstream_server *server;

    open_group(2);
    for (int i = 0; i < 3; i++)
        visit(0, UPSTREAM_FAILED);
    do {
        server = pick(0);
        upstream_leave(upstream, server, UPSTREAM_UNKNOWN);
        usleep(1000);
    } while (server != server_at(0) && since_ms(out_at_ns) < 20000);
    ck_assert_ptr_eq(server, server_at(0));
    ck_assert_int_ge(clock_now_ns() - out_at_ns, conf.ejection.time_ns);
    EXPECT_LOG_LINES("upstream back: server a: ejection over", 1);
    EXPECT_LOG_LINES("ejection over", 1);
    for (int i = 0; i < 3; i++)
        visit(0, UPSTREAM_FAILED);
    EXPECT_LOG_LINES("server a: ejected for 0.4 s", 1);
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
    ck_assert_int_eq(wait_queue_join(&upstream->waiting, &w->ticket, &w->pick, on_done, w), 0);
}

/* Server a is full; who waits gets server b as soon as it is known where that is. */
TEST(upstream, queued_session_gets_a_server_whose_name_is_resolved)
{
    struct loop *loop = loop_runner_create();
    struct waiting waiting = {.done = 0};
    struct upstream_server *first;

    servers[0].max_connections = servers[1].max_connections = 1;
    servers[1].names = UPSTREAM_NAME_ONE;
    servers[1].n_addresses = 0;
    conf.queue_length = 10;
    conf.queue_timeout_ns = 100 * NS_PER_S;
    open_group(2);
    first = pick(0);
    ck_assert_ptr_eq(first, server_at(0));
    pick(-EBUSY);
    loop_runner_call(loop, join, &waiting);
    PAUSE_MS(20);
    ck_assert_uint_eq(atomic_load(&waiting.done), 0);
    ck_assert_int_eq(upstream_set_addresses(upstream, server_at(1), &address, 1), 1);
    UNTIL(atomic_load(&waiting.done) == 1);
    ck_assert_ptr_eq(waiting.got, &server_at(1)->endpoint);
    upstream_leave(upstream, first, UPSTREAM_UNKNOWN);
    upstream_leave(upstream, server_at(1), UPSTREAM_UNKNOWN);
    loop_runner_destroy(loop);
}

TEST(upstream, queued_session_gets_the_freed_place_of_a_server)
{
    struct loop *loop = loop_runner_create();
    struct waiting waiting = {.done = 0};
    struct upstream_server *first;

    servers[0].max_connections = 1;
    conf.queue_length = 10;
    conf.queue_timeout_ns = 100 * NS_PER_S;
    open_group(1);
    first = pick(0);
    loop_runner_call(loop, join, &waiting);
    upstream_leave(upstream, first, UPSTREAM_WORKED);
    UNTIL(atomic_load(&waiting.done) == 1);
    ck_assert_ptr_eq(waiting.got, &server_at(0)->endpoint);
    ck_assert_uint_eq(active(0), 1);
    upstream_leave(upstream, first, UPSTREAM_WORKED);
    loop_runner_destroy(loop);
}

/* ---- many at once ---- */

#define THREADS  4
#define SESSIONS 4000
#define AT_ONCE  5

/* Sessions with every outcome, some of them at the same time. */
static void *storm(void *arg)
{
    struct upstream_server *at[AT_ONCE] = {NULL};
    unsigned seed = (unsigned)(uintptr_t)arg;

    for (unsigned n = 0; n < SESSIONS + AT_ONCE; n++) {
        struct upstream_server **place = &at[n % AT_ONCE];
        struct balancer_pick_state pick;

        if (*place)
            upstream_leave(upstream, *place, (enum upstream_outcome)(rand_r(&seed) % 3));
        *place = NULL;
        balancer_begin(&pick, (uint64_t)rand_r(&seed));
        if (n < SESSIONS && upstream_pick(upstream, &pick, place) < 0)
            *place = NULL;
        ck_assert_uint_le(active(0), 3);
    }
    return NULL;
}

TEST(upstream, concurrent_sessions_are_counted_exactly_and_ejected_servers_return)
{
    pthread_t threads[THREADS];

    log_lines_capture(LOG_LEVEL_ERROR); /* there are more lines than are kept */
    conf.ejection.time_ns = 20 * NS_PER_US;
    conf.ejection.time_max_ns = NS_PER_MS;
    servers[0].max_connections = 3;
    open_group(SERVERS);
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, storm, (void *)(i + 1));
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < SERVERS; i++)
        ck_assert_uint_eq(active(i), 0);
    ck_assert_uint_eq(active_in_all(), 0);
    PAUSE_MS(2); /* longer than any is left out */
    upstream_leave(upstream, pick(0), UPSTREAM_UNKNOWN);
    for (unsigned i = 0; i < SERVERS; i++)
        ck_assert(!is_out(i));
    ck_assert_uint_eq(atomic_load(&upstream->ejection.n_out), 0);
}

GROUP(none, NULL, NULL);

TEST(none, destroying_null_is_allowed)
{
    upstream_destroy(NULL);
}
