/* net/event_load: one event in 64 is timed and charged, while somebody asks. */
#include "base/clock.h"
#include "net/event_load.h"
#include "support/suite.h"

GROUP(event_load, NULL, NULL);

#define AT(seconds, ms) ((seconds)*NS_PER_S + (ms)*NS_PER_MS)

TEST(event_load, load_is_that_of_last_whole_second)
{
    struct event_load load = {.second = 0};

    event_load_charge(&load, AT(7, 100), 1600);
    event_load_charge(&load, AT(7, 900), 3200);
    ck_assert_uint_eq(event_load_us(&load, AT(7, 999)), 0);
    ck_assert_uint_eq(event_load_us(&load, AT(8, 0)), 4800);
    event_load_charge(&load, AT(8, 1), 160);
    ck_assert_uint_eq(event_load_us(&load, AT(8, 999)), 4800);
    ck_assert_uint_eq(event_load_us(&load, AT(9, 0)), 160);
    ck_assert_uint_eq(event_load_us(&load, AT(10, 0)), 0);
}

TEST(event_load, second_without_charge_has_no_load)
{
    struct event_load load = {.second = 0};

    event_load_charge(&load, AT(7, 0), 1600);
    event_load_charge(&load, AT(9, 0), 320);
    ck_assert_uint_eq(event_load_us(&load, AT(9, 500)), 0);
    ck_assert_uint_eq(event_load_us(&load, AT(10, 0)), 320);
}

TEST(event_load, charge_of_any_length_is_cut_at_about_a_second)
{
    struct event_load load = {.second = 0};

    event_load_charge(&load, AT(7, 0), INT64_C(90000000));
    ck_assert_uint_ge(event_load_us(&load, AT(8, 0)), 1000000);
    event_load_charge(&load, AT(8, 0), 1);
    ck_assert_uint_eq(event_load_us(&load, AT(9, 0)), EVENT_LOAD_UNIT_US);
}

TEST(event_load, one_event_in_64_is_timed)
{
    struct event_timing timing = {.left = 0};
    unsigned timed = 0, streak = 0, longest = 0;

    for (unsigned i = 0; i < 64 * 1000; i++) {
        bool is_timed = event_load_begin(&timing) > 0;

        timed += is_timed;
        streak = is_timed ? 0 : streak + 1;
        longest = streak > longest ? streak : longest;
    }
    ck_assert_uint_gt(timed, 900);
    ck_assert_uint_lt(timed, 1100);
    ck_assert_uint_gt(longest, 64); /* at random, not each 64th */
    ck_assert_uint_lt(longest, 128);
}

TEST(event_load, loads_are_known_after_a_whole_second)
{
    struct event_timing timing = {.left = 0};

    ck_assert(!event_load_is_asked(&timing));
    ck_assert(!event_load_ask(&timing, AT(7, 500)));
    ck_assert(event_load_is_asked(&timing));
    ck_assert(!event_load_ask(&timing, AT(8, 900)));
    ck_assert(event_load_ask(&timing, AT(9, 0)));
    ck_assert(event_load_known(&timing, AT(9, 0)));
}

TEST(event_load, timing_ends_when_nobody_asks_any_more)
{
    struct event_timing timing = {.left = 0};
    struct event_load load = {.second = 0};
    int64_t now_ns = clock_now_ns();

    event_load_ask(&timing, now_ns);
    event_load_end(&timing, now_ns, &load);
    ck_assert(event_load_is_asked(&timing));
    event_load_ask(&timing, now_ns - EVENT_LOAD_ASKED_NS);
    event_load_end(&timing, now_ns, &load);
    ck_assert(!event_load_is_asked(&timing));
    ck_assert(!event_load_known(&timing, now_ns + 5 * NS_PER_S));
}

TEST(event_load, channel_that_never_moved_has_moved_never)
{
    struct event_load load = {.second = 0};

    ck_assert_int_eq(event_load_moved_ns(&load, AT(9, 0)), CLOCK_NEVER);
    load.moved_second = event_load_second(AT(7, 600));
    ck_assert_int_eq(event_load_moved_ns(&load, AT(9, 0)), AT(2, 0));
}
