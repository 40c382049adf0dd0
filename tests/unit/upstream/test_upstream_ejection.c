/* upstream/upstream: servers that are ejected when sessions fail there. */
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "support/grouped.h"
#include "support/log_lines.h"
#include "support/suite.h"
#include "support/until.h"
#include "upstream/upstream.h"

GROUP(upstream, grouped_setup, grouped_teardown);

/* ---- what becomes of them ---- */

TEST(upstream, server_with_consecutive_failures_is_ejected)
{
    grouped_open_group(2);
    grouped_visit(0, UPSTREAM_FAILED);
    grouped_visit(0, UPSTREAM_FAILED);
    ck_assert(!grouped_is_out(0));
    grouped_visit(0, UPSTREAM_FAILED);
    ck_assert(grouped_is_out(0));
    ck_assert_uint_eq(
        log_lines_with(
            "upstream back: server a: ejected for 0.2 s: connections failed in a row: 3"),
        1);
    EXPECT_LOG_LINES("", 1);
}

TEST(upstream, success_restarts_the_count_of_failures_and_an_unknown_outcome_does_not)
{
    grouped_open_group(2);
    for (int i = 0; i < 10; i++) {
        grouped_visit(0, UPSTREAM_FAILED);
        grouped_visit(0, UPSTREAM_FAILED);
        grouped_visit(0, UPSTREAM_WORKED);
    }
    ck_assert(!grouped_is_out(0));
    grouped_visit(0, UPSTREAM_FAILED);
    grouped_visit(0, UPSTREAM_UNKNOWN);
    grouped_visit(0, UPSTREAM_FAILED);
    grouped_visit(0, UPSTREAM_UNKNOWN);
    ck_assert(!grouped_is_out(0));
    grouped_visit(0, UPSTREAM_FAILED);
    ck_assert(grouped_is_out(0));
}

TEST(upstream, one_of_two_failing_servers_is_ejected_and_the_other_gets_all_sessions)
{
    grouped_open_group(2);
    for (int i = 0; i < 10; i++) {
        grouped_visit(0, UPSTREAM_FAILED);
        grouped_visit(1, UPSTREAM_FAILED);
    }
    ck_assert(grouped_is_out(0));
    ck_assert(!grouped_is_out(1));
    for (int i = 0; i < 10; i++) {
        struct upstream_server *server = grouped_pick(0);

        if (server == grouped_server_at(0)) /* its time is over: on a busy machine it may be */
            EXPECT_LOG_LINES("ejection over", 1);
        upstream_leave(grouped.upstream, server, UPSTREAM_UNKNOWN);
    }
}

TEST(upstream, log_line_has_the_number_of_failures_and_not_the_threshold)
{
    grouped_open_group(2);
    (void)endpoint_set_flag(&grouped_server_at(1)->endpoint, ENDPOINT_DOWN);
    for (int i = 0; i < 4; i++)
        grouped_visit(0, UPSTREAM_FAILED);
    ck_assert(!grouped_is_out(0)); /* there is no other */
    (void)endpoint_clear_flag(&grouped_server_at(1)->endpoint, ENDPOINT_DOWN);
    grouped_visit(0, UPSTREAM_FAILED);
    EXPECT_LOG_LINES("server a: ejected for 0.2 s: connections failed in a row: 5", 1);
}

TEST(upstream, single_server_is_never_ejected)
{
    grouped.conf.ejection.max_percent = 100;
    grouped_open_group(1);
    for (int i = 0; i < 10; i++)
        grouped_visit(0, UPSTREAM_FAILED);
    upstream_leave(grouped.upstream, grouped_pick(0), UPSTREAM_UNKNOWN);
    ck_assert_uint_eq(log_lines_with(""), 0);
}

TEST(upstream, failure_count_of_zero_disables_ejection)
{
    grouped.conf.ejection.failures = 0;
    grouped_open_group(2);
    for (int i = 0; i < 10; i++)
        grouped_visit(0, UPSTREAM_FAILED);
    ck_assert(!grouped_is_out(0));
    ck_assert_uint_eq(log_lines_with(""), 0);
}

TEST(upstream, server_is_picked_again_after_its_ejection_and_logged_once)
{
    int64_t out_at_ns = clock_now_ns();
    struct upstream_server *server;

    grouped_open_group(2);
    for (int i = 0; i < 3; i++)
        grouped_visit(0, UPSTREAM_FAILED);
    do {
        server = grouped_pick(0);
        upstream_leave(grouped.upstream, server, UPSTREAM_UNKNOWN);
        usleep(1000);
    } while (server != grouped_server_at(0) && since_ms(out_at_ns) < 20000);
    ck_assert_ptr_eq(server, grouped_server_at(0));
    ck_assert_int_ge(clock_now_ns() - out_at_ns, grouped.conf.ejection.time_ns);
    EXPECT_LOG_LINES("upstream back: server a: ejection over", 1);
    EXPECT_LOG_LINES("ejection over", 1);
    for (int i = 0; i < 3; i++)
        grouped_visit(0, UPSTREAM_FAILED);
    EXPECT_LOG_LINES("server a: ejected for 0.4 s", 1);
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
            upstream_leave(grouped.upstream, *place, (enum upstream_outcome)(rand_r(&seed) % 3));
        *place = NULL;
        balancer_begin(&pick, (uint64_t)rand_r(&seed));
        if (n < SESSIONS && upstream_pick(grouped.upstream, &pick, place) < 0)
            *place = NULL;
        ck_assert_uint_le(grouped_active(0), 3);
    }
    return NULL;
}

TEST(upstream, concurrent_sessions_are_counted_exactly_and_ejected_servers_return)
{
    pthread_t threads[THREADS];

    log_lines_capture(LOG_LEVEL_ERROR); /* there are more lines than are kept */
    grouped.conf.ejection.time_ns = 20 * NS_PER_US;
    grouped.conf.ejection.time_max_ns = NS_PER_MS;
    grouped.servers[0].max_connections = 3;
    grouped_open_group(SERVERS);
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, storm, (void *)(i + 1));
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < SERVERS; i++)
        ck_assert_uint_eq(grouped_active(i), 0);
    ck_assert_uint_eq(grouped_active_in_all(), 0);
    PAUSE_MS(2); /* longer than any is left out */
    upstream_leave(grouped.upstream, grouped_pick(0), UPSTREAM_UNKNOWN);
    for (unsigned i = 0; i < SERVERS; i++)
        ck_assert(!grouped_is_out(i));
    ck_assert_uint_eq(atomic_load(&grouped.upstream->ejection.n_out), 0);
}
