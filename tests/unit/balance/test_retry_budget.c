/*
 * balance/retry_budget: a share of the sessions, a reserve with a bound, and a rate that is always
 * allowed.
 */
#include "balance/retry_budget.h"
#include "base/clock.h"
#include "support/suite.h"

static struct retry_budget b;

/* Of ${n} retries at one instant so many are allowed. */
static unsigned take(unsigned n, int64_t now_ns)
{
    unsigned taken = 0;

    for (unsigned i = 0; i < n; i++)
        taken += retry_budget_take(&b, now_ns);
    return taken;
}

static void open_budget(unsigned percent, unsigned sessions)
{
    retry_budget_init(&b, percent);
    (void)take(percent > 0 ? RETRY_BUDGET_MIN_RATE : 0, NS_PER_S); /* what is always allowed */
    for (unsigned i = 0; i < sessions; i++)
        retry_budget_add(&b);
}

GROUP(budget, NULL, NULL);

TEST(budget, retries_are_limited_to_a_share_of_the_sessions)
{
    open_budget(20, 100);
    ck_assert_uint_eq(take(100, NS_PER_S), 20);
    ck_assert_uint_eq(b.retries, RETRY_BUDGET_MIN_RATE + 20);
    ck_assert_uint_eq(b.refused, 80);
}

TEST(budget, reserve_of_retries_is_bounded)
{
    open_budget(100, 10 * RETRY_BUDGET_RESERVE);
    ck_assert_uint_eq(take(10 * RETRY_BUDGET_RESERVE, NS_PER_S), RETRY_BUDGET_RESERVE);
}

TEST(budget, few_retries_a_second_are_always_allowed)
{
    open_budget(1, 0);
    ck_assert_uint_eq(take(100, NS_PER_S), 0);
    ck_assert_uint_eq(take(100, 2 * NS_PER_S), RETRY_BUDGET_MIN_RATE);
}

TEST(budget, share_of_zero_allows_no_retries)
{
    open_budget(0, 1000);
    ck_assert_uint_eq(take(100, NS_PER_S), 0);
}

TEST(budget, changed_share_applies_to_later_sessions)
{
    open_budget(20, 100);
    retry_budget_set(&b, 50);
    for (unsigned i = 0; i < 100; i++)
        retry_budget_add(&b);
    ck_assert_uint_eq(take(100, NS_PER_S), 20 + 50);
    retry_budget_set(&b, 0);
    ck_assert_uint_eq(take(100, 9 * NS_PER_S), 0);
}
