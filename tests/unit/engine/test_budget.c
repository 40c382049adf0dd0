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
    /* without I/O: one batch, or quick tasks for a slice (1000 of 100 ns; the clock is seen each
       64th) */
    {50, 0, 100000, 10 * NS_PER_US, BUDGET_BATCH},
    {50, 0, 100000, 100, 16 * BUDGET_BATCH},
    /* a share smaller than a batch (1 us) is a batch; quick tasks run as long as the share lasts
       (1000 of 1 us) */
    {99, 100 * NS_PER_US, 100000, 1 * NS_PER_US, BUDGET_BATCH},
    {50, 1 * NS_PER_MS, 100000, 1 * NS_PER_US, 16 * BUDGET_BATCH},
    /* slow tasks overshoot the share (70 of 0.1 ms) by one task only */
    {50, 7 * NS_PER_MS, 100000, 100 * NS_PER_US, 70},
    /* the quantum ends a large share, and a batch; a longer task is the only one */
    {1, 1 * NS_PER_S, 100000, 1 * NS_PER_MS, 10},
    {50, 0, 100000, 2 * NS_PER_MS, 5},
    {50, 1 * NS_PER_S, 100000, 1 * NS_PER_S, 1},
    /* at ratio 100 what was queued runs, and no more; the quantum still holds */
    {100, 0, 1000, 10, 1000},
    {100, 1 * NS_PER_S, 3, 10, 3},
    {100, 0, 1, 10, 1},
    {100, 0, 1000, 1 * NS_PER_MS, 10},
};

TEST_EACH(budget, a_turn_runs_tasks_for_its_share_a_batch_at_least_and_the_quantum_at_most,
          ARRAY_LEN(turns))
{
    begin(turns[_i].io_ratio, turns[_i].io_ns, turns[_i].queued);
    ck_assert_uint_eq(run_tasks(turns[_i].task_ns, 100000), turns[_i].run);
}

TEST(budget, the_clock_is_asked_seldom_while_tasks_are_quick)
{
    begin(1, 1 * NS_PER_S, 100000);
    run_tasks(10, 64 * 100);
    ck_assert_uint_le(checks, 100 + 7); /* each batch, and the first one's doubling steps */
}

TEST(budget, the_clock_is_asked_for_each_task_once_they_are_slow)
{
    begin(1, 1 * NS_PER_S, 100000);
    ck_assert_uint_eq(run_tasks(200 * NS_PER_US, 40), 40);
    ck_assert_uint_eq(checks, 40);
}

/* The header's words: after the 1st, 2nd, 4th ... task up to every 64th while tasks are quick. */
TEST(budget, the_clock_is_first_asked_at_powers_of_two)
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
    {10 * NS_PER_US, 106}, /* 100, and up to 8 until the clock is read */
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

TEST(budget, a_long_object_makes_a_step_look_at_the_clock)
{
    budget_begin_step(&b, clock_now_ns(), 0, 1000);
    b.next_check = 5;
    ck_assert(!budget_step_over(&b, false));
    ck_assert(budget_step_over(&b, true));
}
