/* base/clock: instants that never wrap. */
#include "base/clock.h"
#include "support/suite.h"

GROUP(clock, NULL, NULL);

TEST(clock, the_clock_never_goes_back)
{
    int64_t before_ns = clock_now_ns();

    for (int i = 0; i < 10000; i++) {
        int64_t now_ns = clock_now_ns();

        ck_assert_int_ge(now_ns, before_ns);
        before_ns = now_ns;
    }
}

TEST(clock, the_clock_counts_nanoseconds)
{
    const struct timespec pause = {.tv_nsec = 20 * NS_PER_MS};
    int64_t start_ns = clock_now_ns();

    ck_assert_int_eq(nanosleep(&pause, NULL), 0);
    ck_assert_int_ge(clock_now_ns() - start_ns, 20 * NS_PER_MS);
    ck_assert_int_lt(clock_now_ns() - start_ns, 20 * NS_PER_S);
}

TEST(clock, a_delay_is_added_to_an_instant)
{
    ck_assert_int_eq(clock_add_ns(5, 7), 12);
    ck_assert_int_eq(clock_add_ns(5, 0), 5);
}

TEST(clock, a_negative_delay_counts_as_none)
{
    ck_assert_int_eq(clock_add_ns(5, -1), 5);
    ck_assert_int_eq(clock_add_ns(5, INT64_MIN), 5);
}

TEST(clock, a_sum_that_is_too_large_is_never)
{
    ck_assert_int_eq(clock_add_ns(INT64_MAX - 1, 1), CLOCK_NEVER);
    ck_assert_int_eq(clock_add_ns(INT64_MAX - 1, 2), CLOCK_NEVER);
    ck_assert_int_eq(clock_add_ns(1, INT64_MAX), CLOCK_NEVER);
}

TEST(clock, never_stays_never)
{
    ck_assert_int_eq(clock_add_ns(CLOCK_NEVER, 0), CLOCK_NEVER);
    ck_assert_int_eq(clock_add_ns(CLOCK_NEVER, NS_PER_S), CLOCK_NEVER);
}
