/* balance/balancer: least time: by measured times, sessions and weights. */
#include "base/clock.h"
#include "support/endpoints.h"
#include "support/picks.h"
#include "support/suite.h"

#define MS(n) ((int64_t)(n)*NS_PER_MS)

static void measure(unsigned i, int64_t took_ns)
{
    response_time_ended(&picks.es.all[i].times.first_byte, took_ns, clock_now_ns());
}

static void open_time(unsigned n)
{
    endpoints_open(&picks.es, n);
    picks.b = endpoints_balancer(&picks.es, BALANCER_LEAST_TIME);
}

/* How many of ${sessions} that last endpoint ${i} gets, while all are measured again and again. */
static unsigned held_by(unsigned i, unsigned sessions, const int64_t *took_ns)
{
    for (unsigned s = 0; s < sessions; s++) {
        for (unsigned j = 0; took_ns && j < picks.es.n; j++)
            measure(j, took_ns[j]);
        ck_assert_int_ge(endpoints_pick(&picks.es, picks.b, s), 0);
    }
    return endpoint_active(&picks.es.all[i]);
}

static void expect_about(unsigned n, unsigned wanted)
{
    ck_assert_uint_ge(n * 20, wanted * 19);
    ck_assert_uint_le(n * 20, wanted * 21);
}

GROUP(least_time, NULL, picks_teardown);

TEST(least_time, endpoints_without_measurements_share_as_with_least_connections)
{
    open_time(4);
    for (unsigned i = 0; i < 4; i++)
        ck_assert_uint_eq(held_by(i, i == 0 ? 400 : 0, NULL), 100);
}

TEST(least_time, slow_endpoint_gets_no_session_beside_idle_ones)
{
    unsigned picked[3] = {0};

    open_time(3);
    for (unsigned i = 0; i < 100; i++) {
        measure(0, MS(5));
        measure(1, MS(5));
        measure(2, MS(25));
        picks_count(picked, 10);
    }
    ck_assert_uint_eq(picked[2], 0);
    ck_assert_uint_eq(picked[0] + picked[1], 1000);
}

TEST(least_time, sessions_that_last_are_shared_by_speed)
{
    const int64_t took_ns[] = {MS(100), MS(300), MS(600)};

    open_time(3);
    (void)held_by(0, 900, took_ns);
    expect_about(endpoint_active(&picks.es.all[0]), 600);
    expect_about(endpoint_active(&picks.es.all[1]), 200);
    expect_about(endpoint_active(&picks.es.all[2]), 100);
}

TEST(least_time, weights_count_at_equal_speed)
{
    const int64_t took_ns[] = {MS(50), MS(50), MS(50)};

    endpoints_open(&picks.es, 3);
    endpoints_weights(&picks.es, (unsigned[]){6, 2, 1});
    picks.b = endpoints_balancer(&picks.es, BALANCER_LEAST_TIME);
    expect_about(held_by(0, 900, took_ns), 600);
    expect_about(endpoint_active(&picks.es.all[2]), 100);
}

TEST(least_time, new_endpoint_gets_neither_all_sessions_nor_none)
{
    open_time(3);
    measure(0, MS(10));
    measure(1, MS(10));
    expect_about(held_by(2, 600, NULL), 200);
}

TEST(least_time, stalled_endpoint_is_left_before_its_first_late_answer)
{
    unsigned picked[2] = {0};

    open_time(2);
    measure(0, MS(1));
    measure(1, MS(1));
    response_time_began(&picks.es.all[0].times.first_byte, clock_now_ns() - MS(500));
    picks_count(picked, 100);
    ck_assert_uint_eq(picked[0], 0);
}

TEST(least_time, the_only_endpoint_is_used_however_slow)
{
    open_time(2);
    measure(0, MS(1));
    measure(1, MS(60000));
    (void)endpoint_set_flag(&picks.es.all[0], ENDPOINT_DOWN);
    ck_assert_int_eq(endpoints_touch(&picks.es, picks.b, 0), 1);
}

TEST(least_time, of_a_hundred_the_slow_tenth_gets_next_to_nothing)
{
    unsigned picked[100] = {0}, slow = 0;

    open_time(100);
    for (unsigned i = 0; i < 100; i++)
        measure(i, i < 10 ? MS(1000) : MS(10));
    picks_count(picked, 10000);
    for (unsigned i = 0; i < 10; i++)
        slow += picked[i];
    ck_assert_uint_lt(slow, 100); /* all eight choices slow: once in 10^8 */
    for (unsigned i = 10; i < 100; i++)
        ck_assert_uint_gt(picked[i], 0);
}
