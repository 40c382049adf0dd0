/* limits/hold: open, nothing waits; closed, as many pass as are allowed. */
#include "limits/hold.h"
#include "support/suite.h"

static struct hold hold;

GROUP(hold, NULL, NULL);

TEST(hold, open_hold_passes_every_connection)
{
    ck_assert(!hold_is_closed(&hold));
    ck_assert(hold_pass(&hold));
    hold_give_back(&hold);
    hold_close(&hold);
    ck_assert(!hold_pass(&hold));
    hold_open(&hold);
    ck_assert(hold_pass(&hold));
}

TEST(hold, closed_hold_passes_the_allowed_number)
{
    hold_close(&hold);
    ck_assert_uint_eq(hold_allow(&hold, 2), 0);
    ck_assert(hold_pass(&hold));
    ck_assert(hold_pass(&hold));
    ck_assert(!hold_pass(&hold));
    hold_give_back(&hold);
    ck_assert(hold_pass(&hold));
}

TEST(hold, unused_allowance_is_returned_and_expires)
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
