/*
 * server/descriptors: what clients may use changes with what is set aside for other things.
 */
#include <errno.h>

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
    budget = (struct descriptor_budget){0};
}

GROUP(descriptors, setup, NULL);

TEST(descriptors, what_is_set_aside_is_not_for_clients)
{
    unsigned open = descriptor_budget_open(), limit = descriptor_budget_limit();

    descriptors_set_limit(&budget, &few);
    ck_assert(descriptor_budget_left(&budget, limit - open - 4 - FEW));
    ck_assert(!descriptor_budget_left(&budget, limit - open - 4 - FEW + 1));
    ck_assert_uint_eq(budget.reserve, (limit - open - 4 - FEW) / 16);
    ck_assert_uint_eq(log_lines_with("no descriptors"), 0);
}

TEST(descriptors, without_any_for_clients_there_is_a_warning)
{
    struct descriptors_aside all = {.checks = descriptor_budget_limit()};

    descriptors_set_limit(&budget, &all);
    ck_assert(!descriptor_budget_left(&budget, 0));
    ck_assert_uint_eq(budget.reserve, 0);
    EXPECT_LOG_LINES(": no descriptors are left for clients: raise the limit ", 1);
}

TEST(descriptors, more_are_set_aside_before_and_fewer_after_a_change)
{
    descriptors_set_limit(&budget, &few);
    ck_assert_int_eq(descriptors_prepare(&budget, &few, &many), 0);
    ck_assert_uint_eq(budget.used, MANY);
    descriptors_commit(&budget, &few, &many);
    ck_assert_uint_eq(budget.used, MANY);
    ck_assert_int_eq(descriptors_prepare(&budget, &many, &few), 0);
    ck_assert_uint_eq(budget.used, MANY);
    descriptors_commit(&budget, &many, &few);
    ck_assert_uint_eq(budget.used, FEW);
}

TEST(descriptors, cancelled_change_sets_none_aside)
{
    descriptors_set_limit(&budget, &few);
    ck_assert_int_eq(descriptors_prepare(&budget, &few, &many), 0);
    descriptors_cancel(&budget, &few, &many);
    ck_assert_uint_eq(budget.used, FEW);
    ck_assert_int_eq(descriptors_prepare(&budget, &few, &few), 0);
    descriptors_cancel(&budget, &few, &few);
    ck_assert_uint_eq(budget.used, FEW);
}

TEST(descriptors, without_room_a_change_is_refused)
{
    descriptors_set_limit(&budget, &few);
    budget.max = MANY - 1;
    ck_assert_int_eq(descriptors_prepare(&budget, &few, &many), -EMFILE);
    ck_assert_uint_eq(budget.used, FEW);
    budget.max = FEW - 1; /* fewer are fine even without room */
    ck_assert_int_eq(descriptors_prepare(&budget, &many, &few), 0);
}
