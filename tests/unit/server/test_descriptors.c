/*
 * server/descriptors: what clients may use changes with what is set aside for other things.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "net/descriptor_budget.h"
#include "server/descriptors.h"
#include "support/log_lines.h"
#include "support/suite.h"

static struct descriptor_budget budget;
static const struct descriptors_aside few = {.lookups = 1, .checks = 2, .workers = 1};
static const struct descriptors_aside many = {.lookups = 3, .checks = 10, .workers = 1};

#define FEW  (3 * 1 + 2 + 2)
#define MANY (3 * 3 + 10 + 2)

static void setup(void)
{
    log_lines_capture(LOG_LEVEL_WARNING);
    budget = (struct descriptor_budget){.max = UINT_MAX};
}

/* As the server does at its start. */
static int set_limit(const struct descriptors_aside *aside, unsigned each)
{
    const struct descriptors_aside none = {0};

    ck_assert_int_eq(descriptors_prepare(&budget, &none, aside), 0);
    descriptors_commit(&budget, &none, aside);
    return descriptors_set_limit(&budget, aside, each);
}

GROUP(descriptors, setup, NULL);

TEST(descriptors, reserved_descriptors_are_not_used_for_clients)
{
    unsigned open = descriptor_budget_open(), limit = descriptor_budget_limit();

    ck_assert_int_eq(set_limit(&few, 2), 0);
    ck_assert(descriptor_budget_left(&budget, limit - open - 4 - FEW));
    ck_assert(!descriptor_budget_left(&budget, limit - open - 4 - FEW + 1));
    ck_assert_uint_eq(budget.reserve, (limit - open - 4 - FEW) / 16);
    ck_assert_uint_eq(log_lines_with("limit of open files"), 0);
}

TEST(descriptors, start_without_descriptors_for_one_client_fails_and_logs_the_numbers)
{
    unsigned open = descriptor_budget_open(), limit = descriptor_budget_limit();
    struct descriptors_aside all = {.checks = limit - open - 4 - 2};
    char expected[64];

    ck_assert_int_eq(set_limit(&all, 2), 0);
    setup();
    ck_assert_int_eq(set_limit(&all, 3), -EMFILE);
    snprintf(expected, sizeof(expected), ": %u: at least %u are needed: ", limit, limit + 1);
    EXPECT_LOG_LINES(expected, 1);
    EXPECT_LOG_LINES(", 3 for one client: raise the limit ", 1);
    setup();
    all.checks = limit;
    ck_assert_int_eq(set_limit(&all, 1), -EMFILE);
    ck_assert(!descriptor_budget_left(&budget, 0));
    ck_assert_uint_eq(budget.reserve, 0);
}

TEST(descriptors, change_reserves_more_descriptors_at_prepare_and_fewer_at_commit)
{
    ck_assert_int_eq(set_limit(&few, 2), 0);
    ck_assert_int_eq(descriptors_prepare(&budget, &few, &many), 0);
    ck_assert_uint_eq(budget.used, MANY);
    descriptors_commit(&budget, &few, &many);
    ck_assert_uint_eq(budget.used, MANY);
    ck_assert_int_eq(descriptors_prepare(&budget, &many, &few), 0);
    ck_assert_uint_eq(budget.used, MANY);
    descriptors_commit(&budget, &many, &few);
    ck_assert_uint_eq(budget.used, FEW);
}

TEST(descriptors, cancelled_change_reserves_none)
{
    ck_assert_int_eq(set_limit(&few, 2), 0);
    ck_assert_int_eq(descriptors_prepare(&budget, &few, &many), 0);
    descriptors_cancel(&budget, &few, &many);
    ck_assert_uint_eq(budget.used, FEW);
    ck_assert_int_eq(descriptors_prepare(&budget, &few, &few), 0);
    descriptors_cancel(&budget, &few, &few);
    ck_assert_uint_eq(budget.used, FEW);
}

TEST(descriptors, change_beyond_the_descriptor_limit_is_refused)
{
    ck_assert_int_eq(set_limit(&few, 2), 0);
    budget.max = MANY - 1;
    ck_assert_int_eq(descriptors_prepare(&budget, &few, &many), -EMFILE);
    ck_assert_uint_eq(budget.used, FEW);
    budget.max = FEW - 1; /* fewer are fine even without room */
    ck_assert_int_eq(descriptors_prepare(&budget, &many, &few), 0);
}
