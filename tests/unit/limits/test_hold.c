/* limits/hold: open, nothing waits; closed, as many pass as are allowed. */
#include "limits/hold.h"
#include "support/suite.h"

static struct hold hold;

GROUP(hold, NULL, NULL);

TEST(hold, all_pass_while_it_is_open)
{
    ck_assert(!hold_is_closed(&hold));
    ck_assert(hold_pass(&hold));
    hold_give_back(&hold);
    hold_close(&hold);
    ck_assert(!hold_pass(&hold));
    hold_open(&hold);
    ck_assert(hold_pass(&hold));
}

TEST(hold, those_allowed_pass_while_it_is_closed)
{
    hold_close(&hold);
    ck_assert_uint_eq(hold_allow(&hold, 2), 0);
    ck_assert(hold_pass(&hold));
    ck_assert(hold_pass(&hold));
    ck_assert(!hold_pass(&hold));
    hold_give_back(&hold);
    ck_assert(hold_pass(&hold));
}

TEST(hold, those_that_were_not_used_are_told_and_lost)
{
    hold_close(&hold);
    (void)hold_allow(&hold, 3);
    ck_assert(hold_pass(&hold));
    ck_assert_uint_eq(hold_allow(&hold, 1), 2);
    ck_assert(hold_pass(&hold));
    ck_assert(!hold_pass(&hold));
    (void)hold_allow(&hold, 5);
    hold_close(&hold);
    ck_assert(!hold_pass(&hold));
}
