/* engine/visit: loops are stepped until they are over or lost, and done() is called once. */
#include <string.h>

#include "base/clock.h"
#include "engine/loop.h"
#include "engine/visit.h"
#include "support/loop_runner.h"
#include "support/log_lines.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

#define LOOPS 3

static struct loop_group *group;
static struct visit visit;
static struct visit_part parts[LOOPS];
static atomic_uint steps[LOOPS], lost[LOOPS], done;
static unsigned steps_wanted = 1;
static int64_t pause_ns = VISIT_NEXT_TURN;
static _Atomic int64_t first_at_ns, last_at_ns;
static char order[2 * LOOPS + 1];

static int64_t step(void *cookie, unsigned i)
{
    ck_assert_ptr_eq(cookie, group);
    ck_assert(loop_is_current(loop_group_at(group, i)));
    if (atomic_load(&first_at_ns) == 0)
        atomic_store(&first_at_ns, clock_now_ns());
    atomic_store(&last_at_ns, clock_now_ns());
    return atomic_fetch_add(&steps[i], 1) + 1 < steps_wanted ? pause_ns : VISIT_OVER;
}

static void lose(void *cookie, unsigned i)
{
    (void)cookie;
    atomic_fetch_add(&lost[i], 1);
}

static void count_done(void *cookie)
{
    (void)cookie;
    atomic_fetch_add(&done, 1);
}

static const struct visit_ops ops = {.task = VISIT_TASK("visit"),
                                     .first = LOOP_CONTROL,
                                     .step = step,
                                     .lost = lose,
                                     .done = count_done};

static void setup(void)
{
    struct loop_group_conf conf = {
        .name = "work",
        .pool = 2,
        .n_loops = LOOPS,
        .loop = {.budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS}, .max_pending_tasks = 64}};

    log_lines_capture(LOG_LEVEL_WARNING);
    ck_assert_int_eq(loop_group_create(&group, &conf), 0);
    visit_init(&visit, &ops, group, parts, LOOPS);
}

static void end_group(void)
{
    loop_group_stop(group, 0, NS_PER_S);
    loop_runner_join_group(group);
}

static void teardown(void)
{
    end_group();
    ck_assert_uint_eq(atomic_load(&done), 1);
    loop_group_destroy(group);
}

static void start(unsigned i)
{
    loop_runner_stats(loop_group_at(group, i));
}

static void start_all(void)
{
    for (unsigned i = 0; i < LOOPS; i++)
        start(i);
}

static void end_loop(unsigned i)
{
    loop_stop(loop_group_at(group, i), 0, 0);
    loop_runner_join(loop_group_at(group, i));
}

static void begin(void)
{
    visit_begin(&visit, group, LOOPS);
}

GROUP(visit, setup, teardown);

TEST(visit, each_loop_is_stepped_until_it_is_over)
{
    steps_wanted = 5;
    start_all();
    begin();
    UNTIL(atomic_load(&done) == 1);
    for (unsigned i = 0; i < LOOPS; i++) {
        ck_assert_uint_eq(atomic_load(&steps[i]), 5);
        ck_assert_uint_eq(atomic_load(&lost[i]), 0);
    }
}

static unsigned steps_before;

static void run_look(struct task *t)
{
    (void)t;
    steps_before = atomic_load(&steps[0]);
}

TEST(visit, a_step_lets_queued_tasks_run_before_the_next)
{
    static const struct task_type look_type = {.name = "look", .run = run_look};
    struct task look = {.type = &look_type};
    struct tasks_block block;

    steps_wanted = 3;
    start(0);
    tasks_block_begin(&block, loop_group_at(group, 0));
    begin();
    ck_assert_int_eq(loop_submit(loop_group_at(group, 0), LOOP_CONTROL, &look), 0);
    tasks_block_end(&block);
    UNTIL(atomic_load(&done) == 1);
    ck_assert_uint_eq(steps_before, 1);
    ck_assert_uint_eq(atomic_load(&steps[0]), 3);
}

TEST(visit, a_step_that_asks_for_a_pause_gets_it)
{
    steps_wanted = 2;
    pause_ns = 20 * NS_PER_MS;
    start(1);
    begin();
    UNTIL(atomic_load(&done) == 1);
    ck_assert_int_ge(atomic_load(&last_at_ns) - atomic_load(&first_at_ns), pause_ns);
}

TEST(visit, without_threads_it_is_done_at_once_and_none_is_started)
{
    begin();
    ck_assert_uint_eq(atomic_load(&done), 1);
    for (unsigned i = 0; i < LOOPS; i++)
        ck_assert_int_eq(loop_state(loop_group_at(group, i)), LOOP_NOT_STARTED);
}

TEST(visit, it_is_not_done_before_the_last_loop)
{
    struct tasks_block block;

    start_all();
    tasks_block_begin(&block, loop_group_at(group, 1));
    begin();
    UNTIL(atomic_load(&steps[0]) == 1 && atomic_load(&steps[2]) == 1);
    ck_assert_uint_eq(atomic_load(&done), 0);
    tasks_block_end(&block);
    UNTIL(atomic_load(&done) == 1);
    ck_assert_uint_eq(atomic_load(&steps[1]), 1);
}

TEST(visit, a_loop_that_has_ended_is_lost)
{
    start_all();
    end_loop(1);
    begin();
    UNTIL(atomic_load(&done) == 1);
    ck_assert_uint_eq(atomic_load(&lost[1]), 1);
    ck_assert_uint_eq(atomic_load(&steps[1]), 0);
    ck_assert_uint_eq(atomic_load(&steps[0]) + atomic_load(&steps[2]), 2);
    ck_assert_uint_eq(atomic_load(&lost[0]) + atomic_load(&lost[2]), 0);
}

/* In the middle: between two turns, or in a pause. */
TEST_EACH(visit, a_loop_that_ends_in_the_middle_is_lost, 2)
{
    steps_wanted = UINT32_MAX;
    pause_ns = _i == 0 ? VISIT_NEXT_TURN : 60 * NS_PER_S;
    start(2);
    begin();
    UNTIL(atomic_load(&steps[2]) > 0);
    ck_assert_uint_eq(atomic_load(&lost[2]) + atomic_load(&done), 0);
    end_loop(2);
    UNTIL(atomic_load(&done) == 1);
    ck_assert_uint_eq(atomic_load(&lost[2]), 1);
}

static int64_t note_order(void *cookie, unsigned i)
{
    order[strlen(order)] = (char)('0' + i);
    return step(cookie, i);
}

TEST(visit, a_part_visits_more_loops_one_after_the_other)
{
    static const struct visit_ops one_ops = {
        .task = VISIT_TASK("visit"), .first = LOOP_TAIL, .step = note_order, .done = count_done};

    steps_wanted = 2;
    start_all();
    visit_init(&visit, &one_ops, group, parts, 1);
    begin();
    UNTIL(atomic_load(&done) == 1);
    ck_assert_str_eq(order, "001122");
}

TEST(visit, one_loop_is_visited_as_number_0)
{
    start(0);
    visit_begin_one(&visit, loop_group_at(group, 0));
    UNTIL(atomic_load(&done) == 1);
    ck_assert_uint_eq(atomic_load(&steps[0]), 1);
}

TEST(visit, nothing_to_do_is_done_when_each_loop_has_run_a_task)
{
    static const struct visit_ops empty_ops = {
        .task = VISIT_TASK("visit"), .first = LOOP_TAIL, .done = count_done};

    start_all();
    visit_init(&visit, &empty_ops, group, parts, LOOPS);
    begin();
    UNTIL(atomic_load(&done) == 1);
}

static void begin_again(void *cookie)
{
    (void)cookie;
    if (atomic_load(&steps[0]) < 50)
        begin();
    else
        count_done(cookie);
}

TEST(visit, done_may_begin_it_again)
{
    static const struct visit_ops again_ops = {
        .task = VISIT_TASK("visit"), .first = LOOP_TAIL, .step = step, .done = begin_again};

    start_all();
    visit_init(&visit, &again_ops, group, parts, LOOPS);
    begin();
    UNTIL(atomic_load(&done) == 1);
    for (unsigned i = 0; i < LOOPS; i++)
        ck_assert_uint_eq(atomic_load(&steps[i]), 50);
}
