/* balance/endpoint: sessions and marks in one word, and where an endpoint is. */
#include <errno.h>
#include <pthread.h>

#include "balance/endpoint.h"
#include "support/sockets.h"
#include "support/suite.h"

static _Atomic uint32_t load;
static struct endpoint_group group;
static struct endpoint e;

static void setup(void)
{
    load = 0;
    group = (struct endpoint_group){0};
    e = (struct endpoint){.name = "a", .weight = 1, .load = &load, .group = &group};
}

static void teardown(void)
{
    endpoint_close(&e);
}

GROUP(load, setup, teardown);

TEST(load, sessions_are_counted_at_the_endpoint_and_in_the_group)
{
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(endpoint_enter(&e), 0);
    ck_assert_uint_eq(endpoint_active(&e), 3);
    ck_assert_uint_eq(group.load, 3);
    endpoint_leave(&e);
    ck_assert_uint_eq(endpoint_active(&e), 2);
    ck_assert_uint_eq(group.load, 2);
}

TEST(load, full_endpoint_refuses_sessions_until_one_leaves)
{
    e.max_connections = 2;
    ck_assert_int_eq(endpoint_enter(&e), 0);
    ck_assert_int_eq(endpoint_enter(&e), 0);
    ck_assert_int_eq(endpoint_enter(&e), -EBUSY);
    ck_assert_uint_eq(endpoint_active(&e), 2);
    ck_assert_uint_eq(group.load, 2);
    endpoint_leave(&e);
    ck_assert_int_eq(endpoint_enter(&e), 0);
}

TEST(load, flags_and_session_count_are_independent)
{
    e.max_connections = 2;
    ck_assert_int_eq(endpoint_enter(&e), 0);
    ck_assert(endpoint_set_flag(&e, ENDPOINT_WARMING));
    ck_assert(endpoint_set_flag(&e, ENDPOINT_DOWN));
    ck_assert_uint_eq(endpoint_active(&e), 1);
    ck_assert_int_eq(endpoint_enter(&e), 0);
    ck_assert_int_eq(endpoint_enter(&e), -EBUSY);
    endpoint_leave(&e);
    endpoint_leave(&e);
    ck_assert_uint_eq(endpoint_load(&e), ENDPOINT_WARMING | ENDPOINT_DOWN);
    ck_assert(endpoint_clear_flag(&e, ENDPOINT_WARMING));
    ck_assert_uint_eq(endpoint_load(&e), ENDPOINT_DOWN);
}

TEST(load, going_down_is_counted_unless_it_precedes_the_first_check)
{
    ck_assert(endpoint_set_flag(&e, ENDPOINT_DOWN));
    ck_assert_uint_eq(e.downs, 0);
    ck_assert(endpoint_clear_flag(&e, ENDPOINT_DOWN));
    ck_assert(endpoint_set_flag(&e, ENDPOINT_EJECTED));
    ck_assert_uint_eq(e.downs, 1);
    ck_assert(endpoint_clear_flag(&e, ENDPOINT_EJECTED));
    e.is_checked = true;
    ck_assert(endpoint_set_flag(&e, ENDPOINT_DOWN));
    ck_assert_uint_eq(e.downs, 2);
}

TEST(load, setting_a_flag_twice_is_reported_and_counted_once)
{
    ck_assert(!endpoint_clear_flag(&e, ENDPOINT_EJECTED));
    ck_assert_uint_eq(group.changes, 0);
    ck_assert(endpoint_set_flag(&e, ENDPOINT_EJECTED));
    ck_assert(!endpoint_set_flag(&e, ENDPOINT_EJECTED));
    ck_assert_uint_eq(group.changes, 1);
    ck_assert(endpoint_clear_flag(&e, ENDPOINT_EJECTED));
    ck_assert(!endpoint_clear_flag(&e, ENDPOINT_EJECTED));
    ck_assert_uint_eq(group.changes, 2);
}

#define THREADS      4
#define VISITS       50000
#define MOST_AT_ONCE 3

static atomic_uint most, inside, entered;

/* Counts who is inside on its own account. */
static void *visit(void *arg)
{
    (void)arg;
    for (int i = 0; i < VISITS; i++) {
        unsigned now;

        if (endpoint_active(&e) > MOST_AT_ONCE)
            most = MOST_AT_ONCE + 1;
        if (endpoint_enter(&e) < 0)
            continue;
        now = ++inside;
        if (now > most)
            most = now;
        entered++;
        inside--;
        endpoint_leave(&e);
    }
    return NULL;
}

TEST(load, four_threads_never_exceed_max_connections)
{
    pthread_t threads[THREADS];

    e.max_connections = MOST_AT_ONCE;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, visit, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_le(most, MOST_AT_ONCE);
    ck_assert_uint_gt(entered, 0);
    ck_assert_uint_eq(endpoint_load(&e), 0);
    ck_assert_uint_eq(group.load, 0);
}

/*
 * With as many places as threads none is ever refused: an attempt that fails must not take up a
 * place meanwhile.
 */
TEST(load, threads_within_the_limit_are_never_refused)
{
    pthread_t threads[THREADS];

    e.max_connections = THREADS;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, visit, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(entered, THREADS * VISITS);
}

static atomic_uint marked, unmarked;

static void *mark_and_unmark(void *arg)
{
    (void)arg;
    for (int i = 0; i < VISITS; i++) {
        marked += endpoint_set_flag(&e, ENDPOINT_DOWN);
        unmarked += endpoint_clear_flag(&e, ENDPOINT_DOWN);
    }
    return NULL;
}

TEST(load, each_flag_change_is_reported_to_exactly_one_of_four_threads)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, mark_and_unmark, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(marked, unmarked);
    ck_assert_uint_eq(group.changes, marked + unmarked);
    ck_assert_uint_eq(endpoint_load(&e), 0);
}
