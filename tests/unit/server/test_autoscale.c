/*
 * server/autoscale: samples of the time that workers are busy: their interval, their bounds, and
 * what begins them anew.
 */
#include "engine/loop_group.h"
#include "server/autoscale.h"
#include "support/loop_runner.h"
#include "support/suite.h"
#include "support/until.h"

#define WORKERS 2

static struct loop_group *workers; /* idle: no loop has been started */
static struct autoscale a;

static void setup(void)
{
    struct loop_group_conf conf = {
        .name = "work",
        .pool = 2,
        .n_loops = WORKERS,
        .max_loops = 2 * WORKERS,
        .loop = {.budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS}, .max_pending_tasks = 64}};

    ck_assert_int_eq(loop_group_create(&workers, &conf), 0);
}

static void teardown(void)
{
    loop_group_stop(workers, 0, 0);
    loop_runner_join_group(workers);
    loop_group_destroy(workers);
}

static void look(void)
{
    autoscale_look(&a, workers, 1, 4);
}

/* As if the time had gone by since the last sample, in which worker ${i} was busy. */
static void elapse(int64_t ns)
{
    a.at_ns -= ns;
    for (unsigned i = 0; i < a.plan.n_samples; i++)
        a.plan.samples[i].at_ns -= ns;
}

static void be_busy(unsigned i, int64_t ns)
{
    a.busy_ns[i] -= ns;
}

/* Of the sample ${i}, since the first one. */
static int64_t busy_ms(unsigned i)
{
    ck_assert_uint_lt(i, a.plan.n_samples);
    return (a.plan.samples[i].busy_ns - a.plan.samples[0].busy_ns) / NS_PER_MS;
}

GROUP(autoscale, setup, teardown);

TEST(autoscale, samples_add_up_the_busy_time_of_all_workers)
{
    look();
    be_busy(0, 300 * NS_PER_MS);
    be_busy(1, 200 * NS_PER_MS);
    elapse(NS_PER_S);
    look();
    elapse(NS_PER_S);
    look();
    be_busy(1, 50 * NS_PER_MS);
    elapse(NS_PER_S);
    look();
    ck_assert_uint_eq(a.plan.n_samples, 4);
    ck_assert_int_eq(busy_ms(1), 500);
    ck_assert_int_eq(busy_ms(2), 500);
    ck_assert_int_eq(busy_ms(3), 550);
}

static void take_50_ms(void *arg)
{
    (void)arg;
    PAUSE_MS(50);
}

TEST(autoscale, a_worker_is_busy_with_a_task)
{
    look();
    ck_assert_int_eq(loop_group_start(workers), 0);
    loop_runner_call(loop_group_at(workers, 1), take_50_ms, NULL);
    elapse(NS_PER_S);
    look();
    ck_assert_int_ge(busy_ms(1), 50);
}

TEST(autoscale, parked_workers_are_not_measured)
{
    look();
    be_busy(WORKERS, 300 * NS_PER_MS);
    elapse(NS_PER_S);
    look();
    ck_assert_int_eq(busy_ms(1), 0);
}

/* A turn that ends meanwhile may be counted twice. */
TEST(autoscale, no_worker_is_busy_for_longer_than_the_interval)
{
    look();
    be_busy(0, 100 * NS_PER_S);
    elapse(2 * NS_PER_S);
    look();
    ck_assert_int_eq(a.plan.samples[1].busy_ns - a.plan.samples[0].busy_ns,
                     a.plan.samples[1].at_ns - a.plan.samples[0].at_ns);
}

TEST(autoscale, a_time_that_decreases_counts_as_none)
{
    look();
    be_busy(0, -NS_PER_S);
    be_busy(1, 10 * NS_PER_MS);
    elapse(NS_PER_S);
    look();
    ck_assert_int_eq(busy_ms(1), 10);
}

TEST(autoscale, looks_within_a_second_are_one_sample)
{
    look();
    be_busy(0, 100 * NS_PER_MS);
    look();
    ck_assert_uint_eq(a.plan.n_samples, 1);
    elapse(NS_PER_S);
    look();
    ck_assert_int_eq(busy_ms(1), 100);
}

/* What was before the first sample, or before a change, is no load of the number of workers now. */
static void expect_a_new_beginning(unsigned min, unsigned max)
{
    const int64_t total_ns = a.total_ns;

    be_busy(0, 300 * NS_PER_MS);
    elapse(NS_PER_MS);
    autoscale_look(&a, workers, min, max);
    ck_assert_uint_eq(a.plan.n_samples, 1);
    ck_assert_int_eq(a.plan.samples[0].busy_ns, total_ns);
    ck_assert_uint_eq(a.plan.n, loop_group_in_use(workers));
    ck_assert_uint_eq(a.plan.min, min);
    ck_assert_uint_eq(a.plan.max, max);
}

static void look_twice(void)
{
    look();
    be_busy(0, 100 * NS_PER_MS);
    elapse(NS_PER_S);
    look();
    ck_assert_uint_eq(a.plan.n_samples, 2);
}

TEST(autoscale, the_first_sample_has_no_load)
{
    expect_a_new_beginning(1, 4);
}

TEST(autoscale, another_lower_limit_begins_anew)
{
    look_twice();
    expect_a_new_beginning(2, 4);
}

TEST(autoscale, another_upper_limit_begins_anew)
{
    look_twice();
    expect_a_new_beginning(1, 3);
}

TEST(autoscale, another_number_of_workers_begins_anew)
{
    struct loop_group_change change;

    look_twice();
    ck_assert_int_eq(loop_group_prepare(workers, WORKERS + 1, &change), 0);
    loop_group_commit(&change);
    expect_a_new_beginning(1, 4);
}

TEST(autoscale, what_is_forgotten_begins_anew)
{
    look_twice();
    autoscale_forget(&a);
    expect_a_new_beginning(1, 4);
}

TEST(autoscale, a_fixed_number_is_not_measured)
{
    look_twice();
    autoscale_look(&a, workers, 0, 0);
    ck_assert_uint_eq(a.plan.n_samples, 0);
    elapse(2 * NS_PER_S);
    autoscale_look(&a, workers, 0, 0);
    ck_assert_uint_eq(a.plan.n_samples, 0);
    ck_assert(!autoscale_is_settling(&a));
}

TEST(autoscale, it_settles_above_the_lower_limit)
{
    ck_assert(!autoscale_is_settling(&a));
    look();
    ck_assert(autoscale_is_settling(&a));
    autoscale_look(&a, workers, WORKERS, 4);
    ck_assert(!autoscale_is_settling(&a));
}
