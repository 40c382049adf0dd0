/* server/autoscale_plan: how many workers the load needs, from the load alone. */
#include "server/autoscale_plan.h"
#include "support/suite.h"

#include "base/must.h"

GROUP(autoscale_plan, NULL, NULL);

static struct autoscale_plan plan;
static struct autoscale_plan_sample last;

static void use(unsigned n, unsigned min, unsigned max)
{
    plan = (struct autoscale_plan){.n = n, .min = min, .max = max};
    last = (struct autoscale_plan_sample){.at_ns = NS_PER_S};
    autoscale_plan_add(&plan, &last);
}

/* So many seconds in which all workers together are busy for ${percent} of one worker. */
static void load(unsigned seconds, unsigned percent)
{
    while (seconds-- > 0) {
        last.at_ns += NS_PER_S;
        last.busy_ns += percent * (NS_PER_S / 100);
        autoscale_plan_add(&plan, &last);
    }
}

/* The number of workers that the load asks for. */
static unsigned wish(void)
{
    struct autoscale_wish w;

    return autoscale_plan_wish(&plan, &w) ? w.n : plan.n;
}

TEST(autoscale_plan, more_workers_come_after_three_busy_seconds)
{
    use(1, 1, 16);
    load(2, 100);
    ck_assert_uint_eq(wish(), 1);
    load(1, 100);
    ck_assert_uint_eq(wish(), 2);
}

TEST(autoscale_plan, a_busy_second_alone_changes_nothing)
{
    use(2, 1, 16);
    load(10, 110);
    load(1, 200);
    ck_assert_uint_eq(wish(), 2);
    load(1, 110);
    ck_assert_uint_eq(wish(), 2);
}

/* Up to where each would be half busy, in one step. */
TEST(autoscale_plan, as_many_come_at_once_as_the_load_needs)
{
    use(4, 1, 16);
    load(3, 400);
    ck_assert_uint_eq(wish(), 8);
    use(4, 1, 6);
    load(3, 400);
    ck_assert_uint_eq(wish(), 6);
    use(3, 1, 16);
    load(3, 211);
    ck_assert_uint_eq(wish(), 5);
}

TEST(autoscale_plan, the_upper_limit_holds_under_any_load)
{
    use(4, 1, 4);
    load(30, 400);
    ck_assert_uint_eq(wish(), 4);
}

TEST(autoscale_plan, one_worker_goes_after_ten_quiet_seconds)
{
    use(8, 1, 16);
    load(9, 0);
    ck_assert_uint_eq(wish(), 8);
    load(1, 0);
    ck_assert_uint_eq(wish(), 7);
}

TEST(autoscale_plan, the_lower_limit_holds_without_load)
{
    use(2, 2, 16);
    load(60, 0);
    ck_assert_uint_eq(wish(), 2);
}

TEST(autoscale_plan, no_worker_goes_if_the_others_would_be_half_busy)
{
    use(3, 1, 16);
    load(20, 100);
    ck_assert_uint_eq(wish(), 3);
    load(10, 99);
    ck_assert_uint_eq(wish(), 2);
}

/* A burst at the end of quiet seconds may be the first of many. */
TEST(autoscale_plan, no_worker_goes_while_the_load_rises)
{
    use(2, 1, 16);
    load(8, 0);
    load(3, 60);
    ck_assert_uint_eq(wish(), 2);
}

/* The first number at which ${percent} of load asks for no other, after changes from ${n}. */
static unsigned settle(unsigned n, unsigned percent)
{
    for (unsigned i = 0; i < 64; i++) {
        use(n, 1, 16);
        load(12, percent < 100 * n ? percent : 100 * n);
        if (wish() == n)
            return n;
        n = wish();
    }
    return 0; /* to and fro */
}

TEST(autoscale_plan, a_steady_load_comes_to_rest_from_any_number)
{
    for (unsigned percent = 0; percent <= 1600; percent += 7)
        for (unsigned n = 1; n <= 16; n++) {
            unsigned rest = settle(n, percent);

            ck_assert_uint_ge(rest, 1);
            ck_assert_uint_le(percent, rest == 16 ? 1600 : 70 * rest);
        }
}

/* After a change the caller forgets the samples: those before say nothing about the new number. */
TEST(autoscale_plan, without_samples_nothing_is_asked_for)
{
    use(1, 1, 16);
    load(12, 100);
    plan.n_samples = 0;
    ck_assert_uint_eq(wish(), 1);
    autoscale_plan_add(&plan, &last);
    ck_assert_uint_eq(wish(), 1);
}

TEST(autoscale_plan, the_wish_has_the_load_and_the_time_for_the_log)
{
    struct autoscale_wish w;

    use(2, 1, 16);
    load(5, 180);
    ck_assert(autoscale_plan_wish(&plan, &w));
    ck_assert_uint_eq(w.percent, 90);
    ck_assert_int_eq(w.over_ns, 3 * NS_PER_S);
}

/* Samples come late when the main thread slept: one of a minute is a quiet minute. */
TEST(autoscale_plan, a_long_sleep_is_one_quiet_time)
{
    use(4, 1, 16);
    last.at_ns += 60 * NS_PER_S;
    autoscale_plan_add(&plan, &last);
    ck_assert_uint_eq(wish(), 3);
}

TEST(autoscale_plan, samples_that_come_too_early_are_left_out)
{
    use(1, 1, 16);
    for (unsigned i = 0; i < 100; i++) {
        last.at_ns += NS_PER_S / 100;
        last.busy_ns += NS_PER_S / 100;
        autoscale_plan_add(&plan, &last);
    }
    ck_assert_uint_eq(plan.n_samples, 2);
}
