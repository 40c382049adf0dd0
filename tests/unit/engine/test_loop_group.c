/* engine/loop_group: all loops or none, and threads only when they are needed. */
#include <errno.h>
#include <sched.h>

#include "base/clock.h"
#include "engine/loop_group.h"
#include "support/log_lines.h"
#include "support/loop_groups.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

GROUP(loop_group, NULL, NULL);

TEST(loop_group, a_new_group_has_its_loops_and_no_thread)
{
    unsigned before = process_descriptors();

    ck_assert_int_eq(loop_groups_create(5), 0);
    ck_assert_uint_eq(loop_group_size(loop_groups.group), 5);
    UNTIL(process_loops() == 0);
    ck_assert_uint_ge(process_descriptors(), before + 5 * 2); /* epoll and eventfd */
    loop_group_destroy(loop_groups.group);
    ck_assert_uint_eq(process_descriptors(), before);
}

TEST(loop_group, loops_are_named_by_group_pool_and_number)
{
    ck_assert_int_eq(loop_groups_create(3), 0);
    ck_assert_str_eq(loop_name(loop_group_at(loop_groups.group, 0)), "work-2-1");
    ck_assert_str_eq(loop_name(loop_group_at(loop_groups.group, 1)), "work-2-2");
    ck_assert_str_eq(loop_name(loop_group_at(loop_groups.group, 2)), "work-2-3");
    loop_group_destroy(loop_groups.group);
}

TEST(loop_group, each_loop_starts_with_its_own_first_task)
{
    ck_assert_int_eq(loop_groups_create(4), 0);
    for (unsigned i = 0; i < 3; i++) {
        struct loop *next = loop_group_next(loop_groups.group);

        ck_assert_ptr_eq(next, loop_group_at(loop_groups.group, i));
        loop_runner_call(next, loop_groups_nothing, NULL);
        UNTIL(process_loops() == i + 1);
    }
    ck_assert_int_eq(loop_state(loop_group_at(loop_groups.group, 3)), LOOP_NOT_STARTED);
    loop_group_stop(loop_groups.group, 0, NS_PER_S);
    loop_runner_join_group(loop_groups.group);
    UNTIL(process_loops() == 0);
    loop_group_destroy(loop_groups.group);
}

TEST(loop_group, stopping_ends_started_and_unstarted_loops_alike)
{
    ck_assert_int_eq(loop_groups_create(3), 0);
    loop_runner_call(loop_group_at(loop_groups.group, 1), loop_groups_nothing, NULL);
    loop_group_stop(loop_groups.group, 0, NS_PER_S);
    loop_runner_join_group(loop_groups.group);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_eq(loop_state(loop_group_at(loop_groups.group, i)), LOOP_TERMINATED);
    ck_assert_ptr_null(loop_group_next(loop_groups.group));
    loop_group_destroy(loop_groups.group);
}

TEST_EACH(loop_group, failure_to_create_one_loop_creates_none, 20)
{
    unsigned before = process_descriptors();

    process_allow_descriptors((unsigned)_i);
    ck_assert_int_eq(loop_groups_create(10), -EMFILE);
    process_allow_any_descriptors();
    ck_assert_uint_eq(process_descriptors(), before);
    UNTIL(process_loops() == 0);
}

TEST(loop_group, the_state_of_a_group_is_that_of_the_loop_furthest_behind)
{
    ck_assert_int_eq(loop_groups_create(3), 0);
    ck_assert_int_eq(loop_group_state(loop_groups.group), LOOP_NOT_STARTED);
    loop_runner_call(loop_group_at(loop_groups.group, 0), loop_groups_nothing, NULL);
    ck_assert_int_eq(loop_group_state(loop_groups.group), LOOP_NOT_STARTED);
    loop_runner_call(loop_group_at(loop_groups.group, 1), loop_groups_nothing, NULL);
    tasks_block_begin(&loop_groups.block, loop_group_at(loop_groups.group, 2));
    ck_assert_int_eq(loop_group_state(loop_groups.group), LOOP_STARTED);
    loop_stop(loop_group_at(loop_groups.group, 0), 0, NS_PER_S);
    ck_assert_int_eq(loop_group_state(loop_groups.group), LOOP_STARTED);
    loop_group_stop(loop_groups.group, 0, NS_PER_S);
    UNTIL(loop_state(loop_group_at(loop_groups.group, 1)) == LOOP_TERMINATED);
    ck_assert_int_eq(loop_group_state(loop_groups.group), LOOP_SHUTTING_DOWN);
    tasks_block_end(&loop_groups.block);
    loop_runner_join_group(loop_groups.group);
    ck_assert_int_eq(loop_group_state(loop_groups.group), LOOP_TERMINATED);
    loop_group_destroy(loop_groups.group);
}

TEST(loop_group, join_of_a_group_has_one_deadline_for_all_loops)
{
    int64_t began_at_ns;

    ck_assert_int_eq(loop_groups_create(ARRAY_LEN(loop_groups.blocks)), 0);
    for (unsigned i = 0; i < ARRAY_LEN(loop_groups.blocks); i++)
        tasks_block_begin(&loop_groups.blocks[i], loop_group_at(loop_groups.group, i));
    loop_group_stop(loop_groups.group, 0, 0);
    began_at_ns = clock_now_ns();
    ck_assert_int_eq(loop_group_join_until(loop_groups.group, began_at_ns + NS_PER_S), -ETIMEDOUT);
    ck_assert_int_ge(clock_now_ns() - began_at_ns, NS_PER_S);
    ck_assert_int_lt(since_ms(began_at_ns), 7000); /* and not one second for each */
    for (unsigned i = 0; i + 1 < ARRAY_LEN(loop_groups.blocks); i++)
        tasks_block_end(&loop_groups.blocks[i]);
    UNTIL(loop_state(loop_group_at(loop_groups.group, 1)) == LOOP_TERMINATED);
    ck_assert_int_eq(loop_group_join_until(loop_groups.group, 0),
                     -ETIMEDOUT); /* the last one hangs */
    tasks_block_end(&loop_groups.blocks[ARRAY_LEN(loop_groups.blocks) - 1]);
    ck_assert_int_eq(loop_group_join_until(loop_groups.group, CLOCK_NEVER), 0);
    ck_assert_int_eq(loop_group_join_until(loop_groups.group, 0), 0);
    loop_group_destroy(loop_groups.group);
}

TEST(loop_group, the_io_ratio_of_a_group_is_that_of_each_loop)
{
    ck_assert_int_eq(loop_groups_create(3), 0);
    ck_assert_int_eq(loop_group_set_io_ratio(loop_groups.group, 80), 0);
    ck_assert_int_eq(loop_group_set_io_ratio(loop_groups.group, 101), -EINVAL);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(loop_groups_ratio_of(i), 80);
    loop_group_destroy(loop_groups.group);
}

static void note_affinity(void *arg)
{
    ck_assert_int_eq(sched_getaffinity(0, sizeof(cpu_set_t), arg), 0);
}

/* The first and the last processor we may use; on a small machine they are the same. */
static void two_cpus(unsigned cpus[2])
{
    cpu_set_t ours;

    note_affinity(&ours);
    for (cpus[0] = 0; !CPU_ISSET(cpus[0], &ours); cpus[0]++)
        ;
    for (cpus[1] = CPU_SETSIZE - 1; !CPU_ISSET(cpus[1], &ours); cpus[1]--)
        ;
}

TEST(loop_group, loops_are_pinned_in_turn_to_the_configured_processors)
{
    unsigned cpus[2];
    struct loop_group_conf conf = {
        .name = "work",
        .n_loops = 5,
        .loop = {.budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS}, .max_pending_tasks = 64},
        .cpus = cpus,
        .n_cpus = 2};

    two_cpus(cpus);
    ck_assert_int_eq(loop_group_create(&loop_groups.group, &conf), 0);
    for (unsigned i = 0; i < 5; i++) {
        cpu_set_t set;

        loop_runner_call(loop_group_at(loop_groups.group, i), note_affinity, &set);
        ck_assert_int_eq(CPU_COUNT(&set), 1);
        ck_assert(CPU_ISSET(cpus[i % 2], &set));
    }
    loop_group_stop(loop_groups.group, 0, NS_PER_S);
    loop_runner_join_group(loop_groups.group);
    loop_group_destroy(loop_groups.group);
}

TEST(loop_group, a_group_without_loops_can_grow)
{
    struct loop_group_conf conf = {.name = "none", .max_loops = 2, .loop.budget.io_ratio = 50};
    struct loop_group_change change;
    struct loop_group *g;

    ck_assert_int_eq(loop_group_create(&g, &conf), 0);
    ck_assert_ptr_null(loop_group_next(g));
    ck_assert_int_eq(loop_group_join_until(g, 0), 0);
    ck_assert_int_eq(loop_group_prepare(g, 2, &change), 0);
    loop_group_commit(&change);
    ck_assert_uint_eq(loop_group_in_use(g), 2);
    ck_assert_int_eq(loop_group_prepare(g, 0, &change), 0);
    loop_group_commit(&change);
    ck_assert_uint_eq(loop_group_in_use(g), 0);
    ck_assert_uint_eq(loop_group_size(g), 2);
    loop_group_stop(g, 0, 0);
    loop_group_destroy(g);
}

TEST(loop_group, destroying_null_is_allowed)
{
    loop_group_destroy(NULL);
}
