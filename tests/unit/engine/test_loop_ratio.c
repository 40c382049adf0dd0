/* engine/loop, loop_set_io_ratio(): the shares of I/O and tasks follow it while the loop runs. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "support/bell.h"
#include "support/loop_runner.h"
#include "support/observe.h"
#include "support/suite.h"
#include "support/until.h"

#define TURNS       21
#define TURNS_BEGUN 3 /* before a change of the ratio, perhaps */
#define IO_NS       (200 * NS_PER_US)

static struct loop *loop;
static struct bell bell;
static atomic_bool over;
static atomic_uint n_ended;
static double shares[TURNS];
static atomic_int n_shares = TURNS;

static void setup(void)
{
    struct budget_conf budget = {.io_ratio = 50, .quantum_ns = NS_PER_S};

    loop = loop_runner_create_with(budget, 65536);
}

static void teardown(void)
{
    loop_runner_destroy(loop);
}

static void work(int64_t ns)
{
    int64_t end_at_ns = clock_now_ns() + ns;

    while (clock_now_ns() < end_at_ns)
        ;
}

/* The share of I/O, in percent, of the turn that has just ended. */
static void note_share(void)
{
    static struct loop_stats before;
    struct loop_stats now = observe_stats(loop);
    double io_ns = (double)(now.io_ns - before.io_ns),
           task_ns = (double)(now.task_ns - before.task_ns);
    int n = atomic_load(&n_shares);

    if (n >= 0 && n < TURNS)
        shares[n] = 100 * io_ns / (io_ns + task_ns);
    if (n < TURNS)
        atomic_store(&n_shares, n + 1);
    before = now;
}

/* In each turn there is some I/O ... */
static void work_and_ring_again(struct bell *b)
{
    note_share();
    work(IO_NS);
    if (!atomic_load(&over))
        bell_ring(b);
}

/* ... and tasks without end. */
static int64_t task_ns;

static void endless_run(struct task *t)
{
    work(task_ns);
    if (atomic_load(&over) || loop_submit(loop, LOOP_TASKS, t) < 0)
        atomic_fetch_add(&n_ended, 1);
}

static void endless_drop(struct task *t)
{
    (void)t;
    atomic_fetch_add(&n_ended, 1);
}

static void begin_load(struct task *t)
{
    static const struct task_type type = {
        .name = "endless", .run = endless_run, .drop = endless_drop};

    t->type = &type;
    bell_open(&bell, loop, work_and_ring_again);
    bell_ring(&bell);
    ck_assert_int_eq(loop_submit(loop, LOOP_TASKS, t), 0);
}

static void end_load(void)
{
    atomic_store(&over, true);
    UNTIL(atomic_load(&n_ended) == 1);
    bell_close(&bell);
}

static int compare_shares(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* The share of I/O in the middle of the next turns: in some others have the processor. */
static double share_of_io(void)
{
    atomic_store(&n_shares, -TURNS_BEGUN);
    UNTIL(atomic_load(&n_shares) == TURNS);
    qsort(shares, TURNS, sizeof(shares[0]), compare_shares);
    return shares[TURNS / 2];
}

GROUP(ratio, setup, teardown);

TEST(ratio, the_shares_follow_the_ratio_while_the_loop_runs)
{
    static const unsigned ratios[] = {20, 80, 50, 20};
    struct task endless;

    begin_load(&endless);
    for (size_t i = 0; i < ARRAY_LEN(ratios); i++) {
        double share;

        ck_assert_int_eq(loop_set_io_ratio(loop, ratios[i]), 0);
        ck_assert_uint_eq(observe_stats(loop).io_ratio, ratios[i]);
        UNTIL((share = share_of_io(), share > ratios[i] - 15 && share < ratios[i] + 15));
    }
    end_load();
}

static const unsigned kept[] = {10, 25, 50, 75, 90};
static const int64_t costs_ns[] = {5 * NS_PER_US, 20 * NS_PER_US, 200 * NS_PER_US, NS_PER_MS};

/* The share of I/O in all turns from now on, in percent; a while may pass until it is settled. */
static bool share_is_within_5_points_of(unsigned ratio)
{
    struct loop_stats before = observe_stats(loop), now;
    double io_ns, tasks_ns, share;

    UNTIL((now = observe_stats(loop), now.turns >= before.turns + 100));
    io_ns = (double)(now.io_ns - before.io_ns);
    tasks_ns = (double)(now.task_ns - before.task_ns);
    share = 100 * io_ns / (io_ns + tasks_ns);
    return share > ratio - 5. && share < ratio + 5.;
}

TEST_EACH(ratio, ratio_is_kept_at_any_task_cost, ARRAY_LEN(costs_ns))
{
    struct task endless;

    task_ns = costs_ns[_i];
    begin_load(&endless);
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        ck_assert_int_eq(loop_set_io_ratio(loop, kept[i]), 0);
        UNTIL(share_is_within_5_points_of(kept[i]));
    }
    end_load();
}

/* With a budget of what is queued there is one task a turn, since only one is queued. */
TEST(ratio, at_ratio_100_a_turn_runs_only_the_tasks_queued_at_its_start)
{
    struct loop_stats before, now;
    struct task endless;

    begin_load(&endless);
    ck_assert_int_eq(loop_set_io_ratio(loop, 100), 0);
    before = observe_stats(loop);
    UNTIL((now = observe_stats(loop), now.turns >= before.turns + 3));
    before = now;
    UNTIL((now = observe_stats(loop), now.turns >= before.turns + 20));
    end_load();
    ck_assert_uint_le(now.tasks_run - before.tasks_run, now.turns - before.turns + 3);
}

static const unsigned no_ratios[] = {101, 1000, 0xffffffffu};

TEST_EACH(ratio, value_above_100_is_refused_and_changes_nothing, ARRAY_LEN(no_ratios))
{
    ck_assert_int_eq(loop_set_io_ratio(loop, 33), 0);
    ck_assert_int_eq(loop_set_io_ratio(loop, no_ratios[_i]), -EINVAL);
    ck_assert_uint_eq(observe_stats(loop).io_ratio, 33);
}

TEST(ratio, ratios_1_and_100_are_accepted)
{
    ck_assert_int_eq(loop_set_io_ratio(loop, 1), 0);
    ck_assert_uint_eq(observe_stats(loop).io_ratio, 1);
    ck_assert_int_eq(loop_set_io_ratio(loop, 100), 0);
    ck_assert_uint_eq(observe_stats(loop).io_ratio, 100);
}

/* No wait is as short as this goal. */
TEST(ratio, loop_on_auto_gives_up_its_share_while_tasks_wait_longer_than_the_goal)
{
    struct task endless;
    struct loop_stats s;

    loop_set_queue_wait_goal(loop, 1);
    ck_assert_int_eq(loop_set_io_ratio(loop, BUDGET_RATIO_AUTO), 0);
    ck_assert_uint_eq(observe_stats(loop).io_ratio, 50);
    begin_load(&endless);
    UNTIL((s = observe_stats(loop), s.io_ratio < 50));
    end_load();
    ck_assert_str_eq(s.io_ratio_reason, "lowered");
    ck_assert_int_gt(s.queue_wait_judged_ns, 1);
    ck_assert_int_eq(loop_set_io_ratio(loop, 60), 0);
    ck_assert_str_eq(observe_stats(loop).io_ratio_reason, "fixed");
    ck_assert_uint_eq(observe_stats(loop).io_ratio, 60);
}

static void *turn_the_knob(void *arg)
{
    unsigned ratio = 1;

    while (!atomic_load(&over)) {
        ck_assert_int_eq(loop_set_io_ratio(loop, ratio), 0);
        ratio = ratio % 100 + 1;
    }
    return arg;
}

TEST(ratio, any_thread_may_change_the_ratio_at_any_time)
{
    struct loop_stats before, now;
    struct task endless;
    pthread_t turner;

    begin_load(&endless);
    pthread_create(&turner, NULL, turn_the_knob, NULL);
    before = observe_stats(loop);
    UNTIL((now = observe_stats(loop), now.turns >= before.turns + 20));
    ck_assert_uint_ge(now.io_ratio, 1);
    ck_assert_uint_le(now.io_ratio, 100);
    end_load();
    pthread_join(turner, NULL);
}
