/* base/clock: instants that never wrap. */
#include <check.h>
#include <stdlib.h>

#include "base/clock.h"

START_TEST(the_clock_never_goes_back)
{
    int64_t before_ns = clock_now_ns();

    for (int i = 0; i < 10000; i++) {
        int64_t now_ns = clock_now_ns();

        ck_assert_int_ge(now_ns, before_ns);
        before_ns = now_ns;
    }
}
END_TEST

START_TEST(the_clock_counts_nanoseconds)
{
    const struct timespec pause = {.tv_nsec = 20 * NS_PER_MS};
    int64_t start_ns = clock_now_ns();

    ck_assert_int_eq(nanosleep(&pause, NULL), 0);
    ck_assert_int_ge(clock_now_ns() - start_ns, 20 * NS_PER_MS);
    ck_assert_int_lt(clock_now_ns() - start_ns, 20 * NS_PER_S);
}
END_TEST

START_TEST(a_delay_is_added_to_an_instant)
{
    ck_assert_int_eq(clock_add_ns(5, 7), 12);
    ck_assert_int_eq(clock_add_ns(5, 0), 5);
}
END_TEST

START_TEST(a_negative_delay_counts_as_none)
{
    ck_assert_int_eq(clock_add_ns(5, -1), 5);
    ck_assert_int_eq(clock_add_ns(5, INT64_MIN), 5);
}
END_TEST

START_TEST(a_sum_that_is_too_large_is_never)
{
    ck_assert_int_eq(clock_add_ns(INT64_MAX - 1, 1), CLOCK_NEVER);
    ck_assert_int_eq(clock_add_ns(INT64_MAX - 1, 2), CLOCK_NEVER);
    ck_assert_int_eq(clock_add_ns(1, INT64_MAX), CLOCK_NEVER);
}
END_TEST

START_TEST(never_stays_never)
{
    ck_assert_int_eq(clock_add_ns(CLOCK_NEVER, 0), CLOCK_NEVER);
    ck_assert_int_eq(clock_add_ns(CLOCK_NEVER, NS_PER_S), CLOCK_NEVER);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("base/clock");
    TCase *tc = tcase_create("clock");
    SRunner *runner;
    int failed;

    tcase_add_test(tc, the_clock_never_goes_back);
    tcase_add_test(tc, the_clock_counts_nanoseconds);
    tcase_add_test(tc, a_delay_is_added_to_an_instant);
    tcase_add_test(tc, a_negative_delay_counts_as_none);
    tcase_add_test(tc, a_sum_that_is_too_large_is_never);
    tcase_add_test(tc, never_stays_never);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
