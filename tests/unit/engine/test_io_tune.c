/* engine/io_tune: the share of I/O follows how long tasks wait, fast down and slowly up. */
#include "base/must.h"
#include "engine/io_tune.h"
#include "support/suite.h"

#define GOAL_NS NS_PER_MS

static struct io_tune t;
static struct telemetry loop;
static int64_t io_each_ns, task_each_ns; /* in the time until a look */
static int64_t now_ns;

static void setup(void)
{
    t = (struct io_tune){.looked_at_ns = 0};
    loop = (struct telemetry){.turns = 0};
    io_each_ns = task_each_ns = NS_PER_S / 2;
    now_ns = 100 * NS_PER_S;
}

/* ${n} tasks wait ${wait_ns} each; then ${after_ns} have passed. */
static unsigned look_after(unsigned n, int64_t wait_ns, int64_t after_ns)
{
    while (n-- > 0)
        histogram_count(&loop.queue_wait, wait_ns);
    TELEMETRY_ADD(loop.io_ns, io_each_ns);
    TELEMETRY_ADD(loop.task_ns, task_each_ns);
    now_ns += after_ns;
    return io_tune_ratio(&t, &loop, GOAL_NS, now_ns);
}

static unsigned second(unsigned n, int64_t wait_ns)
{
    return look_after(n, wait_ns, NS_PER_S);
}

static void begin(void)
{
    ck_assert_uint_eq(second(0, 0), IO_TUNE_START);
    ck_assert_str_eq(io_tune_reason(&t), "start");
}

GROUP(io_tune, setup, NULL);

TEST(io_tune, the_start_is_known_before_the_first_look)
{
    ck_assert_uint_eq(io_tune_in_use(&t), IO_TUNE_START);
    ck_assert_str_eq(io_tune_reason(&t), "start");
    begin();
}

TEST(io_tune, long_waits_take_a_quarter_each_second_down_to_the_least)
{
    static const unsigned shares[] = {37, 27, 20, 15, 11, IO_TUNE_LEAST};

    begin();
    for (unsigned i = 0; i < ARRAY_LEN(shares); i++) {
        ck_assert_uint_eq(second(100, 3 * GOAL_NS), shares[i]);
        ck_assert_str_eq(io_tune_reason(&t), "lowered");
    }
    ck_assert_uint_eq(second(100, 3 * GOAL_NS), IO_TUNE_LEAST);
    ck_assert_str_eq(io_tune_reason(&t), "least");
    ck_assert_uint_eq(io_tune_in_use(&t), IO_TUNE_LEAST);
}

TEST(io_tune, short_waits_give_one_percent_each_second_up_to_the_most)
{
    begin();
    for (unsigned share = IO_TUNE_START + 1; share <= IO_TUNE_MOST; share++) {
        ck_assert_uint_eq(second(100, GOAL_NS / 10), share);
        ck_assert_str_eq(io_tune_reason(&t), "raised");
    }
    ck_assert_uint_eq(second(100, GOAL_NS / 10), IO_TUNE_MOST);
    ck_assert_str_eq(io_tune_reason(&t), "most");
}

TEST(io_tune, waits_near_the_goal_change_nothing)
{
    begin();
    ck_assert_uint_eq(second(1000, 300 * NS_PER_US), IO_TUNE_START);
    ck_assert_str_eq(io_tune_reason(&t), "met");
}

/* 2 of 100 are more than one in a hundred, 1 of 1000 is not. */
TEST(io_tune, the_longest_of_a_hundred_waits_decide)
{
    begin();
    histogram_count(&loop.queue_wait, 50 * GOAL_NS);
    ck_assert_uint_eq(second(999, GOAL_NS / 10), IO_TUNE_START + 1);
    histogram_count(&loop.queue_wait, 50 * GOAL_NS);
    histogram_count(&loop.queue_wait, 50 * GOAL_NS);
    ck_assert_uint_lt(second(98, GOAL_NS / 10), IO_TUNE_START);
}

TEST(io_tune, only_waits_since_the_last_look_count)
{
    begin();
    ck_assert_uint_eq(second(1000000, 3 * GOAL_NS), 37);
    ck_assert_uint_eq(second(IO_TUNE_WAITS, GOAL_NS / 10), 38);
}

TEST(io_tune, there_is_one_look_a_second)
{
    begin();
    ck_assert_uint_eq(look_after(100, 3 * GOAL_NS, NS_PER_S - 1), IO_TUNE_START);
    ck_assert_uint_eq(look_after(0, 0, 1), 37);
}

TEST(io_tune, few_tasks_change_nothing)
{
    begin();
    ck_assert_uint_eq(second(IO_TUNE_WAITS - 1, 3 * GOAL_NS), IO_TUNE_START);
    ck_assert_str_eq(io_tune_reason(&t), "few_tasks");
    ck_assert_uint_eq(second(IO_TUNE_WAITS, 3 * GOAL_NS), 37);
}

TEST(io_tune, io_that_takes_less_than_half_of_its_share_keeps_it)
{
    begin();
    io_each_ns = 24 * NS_PER_MS;
    task_each_ns = 76 * NS_PER_MS;
    ck_assert_uint_eq(second(100, 3 * GOAL_NS), IO_TUNE_START);
    ck_assert_str_eq(io_tune_reason(&t), "unused");
    io_each_ns = 26 * NS_PER_MS;
    task_each_ns = 74 * NS_PER_MS;
    ck_assert_uint_eq(second(100, 3 * GOAL_NS), 37);
    ck_assert_str_eq(io_tune_reason(&t), "lowered");
}

TEST(io_tune, a_look_at_long_ago_changes_nothing)
{
    begin();
    ck_assert_uint_eq(look_after(100, 3 * GOAL_NS, 60 * NS_PER_S), IO_TUNE_START);
    ck_assert_uint_eq(second(100, 3 * GOAL_NS), 37);
}
