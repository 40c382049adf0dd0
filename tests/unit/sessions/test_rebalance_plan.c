/* sessions/rebalance_plan: which sessions move where, from loads alone. */
#include "sessions/rebalance_load.h"
#include "sessions/rebalance_plan.h"
#include "support/suite.h"

#include "base/clock.h"
#include "base/must.h"

GROUP(rebalance_plan, NULL, NULL);

#define MS 1000 /* of load, in microseconds */

static struct rebalance_plan_loop loops[4];
static struct rebalance_plan plan;

static void use(unsigned n, const unsigned *loads_ms)
{
    plan = (struct rebalance_plan){.n_loops = n, .loops = loops};
    for (unsigned i = 0; i < n; i++)
        loops[i] = (struct rebalance_plan_loop){.load_us = loads_ms[i] * MS};
}

#define USE(...)                                          \
    do {                                                  \
        static const unsigned loads_ms[] = {__VA_ARGS__}; \
                                                          \
        use(ARRAY_LEN(loads_ms), loads_ms);               \
    } while (0)

static void note(unsigned times)
{
    while (times-- > 0)
        (void)rebalance_plan_note(&plan);
}

/* Place sessions of these loads, heaviest first; returns how many move. */
static unsigned place(int from, const unsigned *loads_ms, unsigned n)
{
    unsigned moved = 0;

    for (unsigned i = 0; i < n; i++)
        moved += rebalance_plan_place(&plan, from, loads_ms[i] * MS) != REBALANCE_PLAN_NONE;
    return moved;
}

TEST(rebalance_plan, loop_gives_up_sessions_after_three_looks)
{
    USE(710, 100);
    note(2);
    ck_assert_int_eq(rebalance_plan_from(&plan, false), REBALANCE_PLAN_NONE);
    note(1);
    ck_assert_int_eq(rebalance_plan_from(&plan, false), 0);
}

TEST(rebalance_plan, look_at_a_loop_that_is_not_busy_begins_the_count_again)
{
    USE(900, 100);
    note(2);
    loops[0].load_us = 700 * MS;
    ck_assert(!rebalance_plan_note(&plan));
    loops[0].load_us = 900 * MS;
    note(2);
    ck_assert_int_eq(rebalance_plan_from(&plan, false), REBALANCE_PLAN_NONE);
}

TEST(rebalance_plan, loop_with_turns_above_the_goal_is_busy)
{
    USE(100, 300);
    loops[1].turn_ns = 9 * NS_PER_MS;
    note(3);
    ck_assert_int_eq(rebalance_plan_from(&plan, false), REBALANCE_PLAN_NONE);
    plan.turn_goal_ns = 8 * NS_PER_MS;
    note(3);
    ck_assert_int_eq(rebalance_plan_from(&plan, false), 1);
}

TEST(rebalance_plan, busiest_loop_gives_up_sessions_only_if_the_idlest_has_far_less_load)
{
    USE(900, 950, 760, 990);
    note(3);
    ck_assert_int_eq(rebalance_plan_from(&plan, false), 3);
    loops[2].load_us = 792 * MS;
    ck_assert_int_eq(rebalance_plan_from(&plan, false), REBALANCE_PLAN_NONE);
}

TEST(rebalance_plan, forced_look_needs_no_busy_loop_but_a_difference)
{
    USE(20, 100, 30);
    ck_assert_int_eq(rebalance_plan_from(&plan, false), REBALANCE_PLAN_NONE);
    ck_assert_int_eq(rebalance_plan_from(&plan, true), 1);
    loops[0].load_us = loops[1].load_us;
    loops[2].load_us = loops[1].load_us;
    ck_assert_int_eq(rebalance_plan_from(&plan, true), REBALANCE_PLAN_NONE);
}

TEST(rebalance_plan, one_loop_has_nowhere_to_give_sessions)
{
    USE(990);
    note(3);
    ck_assert_int_eq(rebalance_plan_from(&plan, true), REBALANCE_PLAN_NONE);
}

TEST(rebalance_plan, sessions_that_move_are_together_at_most_half_the_difference)
{
    static const unsigned sessions[] = {200, 200, 200, 100, 100, 50};

    USE(900, 100);
    ck_assert_uint_eq(place(0, sessions, 6), 2); /* 400 of 800 */
    ck_assert_uint_eq(loops[0].load_us, 500 * MS);
    ck_assert_uint_eq(loops[1].load_us, 500 * MS);
}

TEST(rebalance_plan, equal_heavy_sessions_spread_over_all_loops)
{
    static const unsigned sessions[] = {95, 95, 95, 95, 95, 95, 95, 95, 95, 95};

    USE(950, 50, 60, 55);
    ck_assert_uint_eq(place(0, sessions, 10), 6);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_uint_ge(loops[i].load_us, 240 * MS);
        ck_assert_uint_le(loops[i].load_us, 380 * MS);
    }
}

TEST(rebalance_plan, elephant_stays_and_light_sessions_leave_it)
{
    static const unsigned sessions[] = {900, 10, 9, 8, 7, 6};

    USE(980, 50);
    ck_assert_int_eq(rebalance_plan_place(&plan, 0, sessions[0] * MS), REBALANCE_PLAN_NONE);
    ck_assert_uint_eq(place(0, sessions, 6), 5);
}

TEST(rebalance_plan, move_that_failed_gives_its_load_back)
{
    int to;

    USE(900, 100);
    to = rebalance_plan_place(&plan, 0, 300 * MS);
    ck_assert_int_eq(to, 1);
    rebalance_plan_undo(&plan, 0, to, 300 * MS);
    ck_assert_uint_eq(loops[0].load_us, 900 * MS);
    ck_assert_uint_eq(loops[1].load_us, 100 * MS);
}

TEST(rebalance_plan, sessions_without_measured_load_move_while_a_difference_is_left)
{
    USE(990, 980);
    ck_assert_int_eq(rebalance_plan_place(&plan, 0, 1), 1);
    loops[0].load_us = loops[1].load_us = 980 * MS;
    ck_assert_int_eq(rebalance_plan_place(&plan, 0, 1), REBALANCE_PLAN_NONE);
}

TEST(rebalance_plan, turns_between_two_looks_are_rounded_down)
{
    struct histogram h = {.ns = 0};
    struct histogram_view before, now;

    for (unsigned i = 0; i < 1000; i++)
        histogram_count(&h, 900 * NS_PER_MS);
    histogram_read(&h, &before);
    ck_assert_int_eq(rebalance_load_turn_ns(&before, &before), 0);
    for (unsigned i = 0; i < 98; i++)
        histogram_count(&h, 3 * NS_PER_US);
    histogram_count(&h, 9 * NS_PER_MS);
    histogram_count(&h, 9 * NS_PER_MS);
    histogram_read(&h, &now);
    ck_assert_int_eq(rebalance_load_turn_ns(&before, &now), 8192 * NS_PER_US);
}
