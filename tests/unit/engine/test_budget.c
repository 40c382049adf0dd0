/* engine/budget: the arithmetic of io_ratio, and how often the clock is looked at. */
#include "base/clock.h"
#include "base/must.h"
#include "engine/budget.h"
#include "support/suite.h"

#define QUANTUM_NS (10 * NS_PER_MS)

static struct budget b;

/*
 * Run tasks of ${task_ns} each under a fake clock until the budget says stop, or ${most} have run;
 * how many times the clock was asked is left in `checks`.
 */
static unsigned checks;

static uint64_t run_tasks(int64_t task_ns, uint64_t most)
{
    int64_t now_ns = b.start_at_ns;
    uint64_t n = 0;

    checks = 0;
    while (n < most) {
        n++;
        now_ns += task_ns;
        if (!budget_count(&b))
            continue;
        checks++;
        if (budget_spent(&b, now_ns))
            break;
    }
    return n;
}

static void begin(unsigned io_ratio, int64_t io_ns, uint64_t queued)
{
    struct budget_conf conf = {.io_ratio = io_ratio, .quantum_ns = QUANTUM_NS};

    budget_begin(&b, &conf, io_ns, 5 * NS_PER_S, queued);
}

struct share {
    unsigned io_ratio;
    int64_t io_ns;
    int64_t share_ns;
};

static const struct share shares[] = {
    {50, 1000, 1000},
    {20, 1000, 4000},
    {80, 1000, 250},
    {1, 1000, 99000},
    {99, 990, 10},
    {99, 98, 0},
    {100, 1000, 0},
    {50, 0, 0},
    {1, INT64_MAX, CLOCK_NEVER},
    {50, INT64_MAX, CLOCK_NEVER},
    {99, INT64_MAX, INT64_MAX / 99},
    {100, INT64_MAX, 0},
};

GROUP(budget, NULL, NULL);

TEST_EACH(budget, the_share_of_tasks_follows_io_time_and_ratio, ARRAY_LEN(shares))
{
    const struct share *s = &shares[_i];

    ck_assert_int_eq(budget_share_ns(s->io_ns, s->io_ratio), s->share_ns);
}

/* Tasks that take ${task_ns} each, after ${io_ns} of I/O, and how many of them a turn runs. */
static const struct {
    unsigned io_ratio;
    int64_t io_ns;
    unsigned queued;
    int64_t task_ns;
    uint64_t run;
} turns[] = {
    /* without I/O: what fits into a slice of 100 us, and one that is longer */
    {50, 0, 100000, 10 * NS_PER_US, 10},
    {50, 0, 100000, 100, 1000},
    {50, 0, 100000, 2 * NS_PER_MS, 1},
    /* with I/O: what fits into the share, slow or quick, and one that is longer */
    {99, 100 * NS_PER_US, 100000, 1 * NS_PER_US, 2},
    {50, 1 * NS_PER_MS, 100000, 1 * NS_PER_US, 1000},
    {50, 7 * NS_PER_MS, 100000, 100 * NS_PER_US, 70},
    {50, 500 * NS_PER_US, 100000, 20 * NS_PER_US, 25},
    {99, 500 * NS_PER_US, 100000, 20 * NS_PER_US, 1},
    {99, 98, 100000, 20 * NS_PER_US, 1},
    /* the quantum ends a large share; a longer task is the only one */
    {1, 1 * NS_PER_S, 100000, 1 * NS_PER_MS, 10},
    {50, 1 * NS_PER_S, 100000, 1 * NS_PER_S, 1},
    /* at ratio 100 what was queued runs, and no more; the quantum still holds */
    {100, 0, 1000, 10, 1000},
    {100, 1 * NS_PER_S, 3, 10, 3},
    {100, 0, 1, 10, 1},
    {100, 0, 1000, 1 * NS_PER_MS, 10},
};

TEST_EACH(budget, turn_runs_tasks_for_its_share_at_least_one_and_at_most_a_quantum,
          ARRAY_LEN(turns))
{
    begin(turns[_i].io_ratio, turns[_i].io_ns, turns[_i].queued);
    ck_assert_uint_eq(run_tasks(turns[_i].task_ns, 100000), turns[_i].run);
}

/* The share of I/O, in percent, of turns with ${io_ns} of I/O, which always have tasks. */
static double share_of_io(unsigned io_ratio, int64_t io_ns, int64_t task_ns)
{
    int64_t now_ns, io_total_ns = 0, tasks_ns = 0;

    while (io_total_ns + tasks_ns < 10 * NS_PER_S) {
        begin(io_ratio, io_ns, 100000);
        now_ns = b.start_at_ns;
        if (budget_allows_tasks(&b))
            now_ns += (int64_t)run_tasks(task_ns, 100000) * task_ns;
        budget_end(&b, now_ns);
        io_total_ns += io_ns;
        tasks_ns += now_ns - b.start_at_ns;
    }
    return 100. * (double)io_total_ns / (double)(io_total_ns + tasks_ns);
}

static const unsigned ratios[] = {1, 10, 25, 50, 75, 90, 99};
static const int64_t times_ns[] = {5 * NS_PER_US, 20 * NS_PER_US, 100 * NS_PER_US, 500 * NS_PER_US,
                                   NS_PER_MS};

TEST_EACH(budget, share_of_io_follows_the_ratio_at_any_task_cost, ARRAY_LEN(ratios))
{
    for (size_t io = 0; io < ARRAY_LEN(times_ns); io++) {
        for (size_t task = 0; task < ARRAY_LEN(times_ns); task++) {
            double share;

            if (budget_share_ns(times_ns[io], ratios[_i]) > QUANTUM_NS)
                continue;
            b.owed_ns = 0;
            share = share_of_io(ratios[_i], times_ns[io], times_ns[task]);
            ck_assert_double_ge(share, ratios[_i] - 1.);
            ck_assert_double_le(share, ratios[_i] + 1.);
        }
    }
}

/* One task of 4 ms at ratio 50, then turns with I/O of 1 ms. */
TEST(budget, time_beyond_the_share_is_deducted_from_the_next_turns)
{
    begin(50, 1 * NS_PER_MS, 100000);
    ck_assert_uint_eq(run_tasks(4 * NS_PER_MS, 100000), 1);
    budget_end(&b, b.start_at_ns + 4 * NS_PER_MS);
    for (int i = 0; i < 2; i++) {
        begin(50, 1 * NS_PER_MS, 100000);
        ck_assert(!budget_allows_tasks(&b));
        budget_end(&b, b.start_at_ns);
    }
    begin(50, 1 * NS_PER_MS, 100000);
    ck_assert(budget_allows_tasks(&b));
}

TEST(budget, turn_without_io_or_ratio_clears_the_debt)
{
    for (int i = 0; i < 2; i++) {
        begin(50, 1 * NS_PER_MS, 100000);
        budget_end(&b, b.start_at_ns + 4 * NS_PER_MS);
        ck_assert_int_eq(b.owed_ns, 3 * NS_PER_MS);
        begin(i == 0 ? 50 : 100, i == 0 ? 0 : 1 * NS_PER_MS, 100000);
        ck_assert(budget_allows_tasks(&b));
        budget_end(&b, b.start_at_ns + 4 * NS_PER_MS);
        ck_assert_int_eq(b.owed_ns, 0);
    }
}

TEST(budget, debt_is_at_most_a_quantum)
{
    begin(50, 1 * NS_PER_MS, 100000);
    budget_end(&b, b.start_at_ns + 1 * NS_PER_S);
    ck_assert_int_eq(b.owed_ns, QUANTUM_NS);
}

TEST(budget, unused_time_of_tasks_is_not_saved)
{
    begin(50, 1 * NS_PER_MS, 100000);
    budget_end(&b, b.start_at_ns);
    ck_assert_int_eq(b.owed_ns, 0);
}

TEST(budget, clock_is_read_seldom_while_tasks_are_quick)
{
    begin(1, 1 * NS_PER_S, 100000);
    run_tasks(10, 64 * 100);
    ck_assert_uint_le(checks, 100 + 7); /* each batch, and the first one's doubling steps */
}

TEST(budget, clock_is_read_after_each_slow_task)
{
    begin(1, 1 * NS_PER_S, 100000);
    ck_assert_uint_eq(run_tasks(200 * NS_PER_US, 40), 40);
    ck_assert_uint_eq(checks, 40);
}

/* The header's words: after the 1st, 2nd, 4th ... task up to every 64th while tasks are quick. */
TEST(budget, clock_is_first_read_at_powers_of_two)
{
    uint64_t asked[10];
    unsigned n = 0;

    begin(1, 1 * NS_PER_S, 100000);
    for (uint64_t run = 1; n < 9; run++) {
        if (budget_count(&b)) {
            asked[n++] = run;
            ck_assert(!budget_spent(&b, b.start_at_ns));
        }
    }
    for (unsigned i = 0; i <= 6; i++)
        ck_assert_uint_eq(asked[i], UINT64_C(1) << i);
    ck_assert_uint_eq(asked[7], 128);
    ck_assert_uint_eq(asked[8], 192);
}

/* Objects of ${object_ns} each, and how many a step of a millisecond and 1,000 objects has. */
static const struct {
    int64_t object_ns;
    uint64_t n;
} objects[] = {
    {1, 1000},
    {10 * NS_PER_US, 100},
    {100 * NS_PER_US, 10},
    {2 * NS_PER_MS, 1},
};

TEST_EACH(budget, a_step_ends_after_its_objects_or_its_time, ARRAY_LEN(objects))
{
    budget_begin_step(&b, 5 * NS_PER_S, NS_PER_MS, 1000);
    ck_assert_uint_eq(run_tasks(objects[_i].object_ns, 5000), objects[_i].n);
}

TEST(budget, in_a_step_the_clock_is_read_after_every_eighth_object)
{
    budget_begin_step(&b, 5 * NS_PER_S, NS_PER_MS, 1000);
    ck_assert_uint_eq(run_tasks(1, 807), 807);
    ck_assert_uint_eq(checks, 103); /* after 1, 3, 7, 15 ... */
}

TEST(budget, long_object_makes_a_step_read_the_clock)
{
    budget_begin_step(&b, clock_now_ns(), 0, 1000);
    b.next_check = 5;
    ck_assert(!budget_step_over(&b, false));
    ck_assert(budget_step_over(&b, true));
}
