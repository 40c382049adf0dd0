/* engine/loop_group: all loops or none, threads only when they are needed. */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "engine/loop_group.h"
#include "support/loop_runner.h"
#include "support/process.h"
#include "support/suite.h"
#include "support/tasks.h"
#include "support/until.h"

static struct loop_group *group;

static int create(unsigned n)
{
    struct loop_group_conf conf = {
        .name = "work",
        .pool = 2,
        .n_loops = n,
        .loop = {.budget = {.io_ratio = 50, .quantum_ns = NS_PER_MS}, .max_pending_tasks = 64}};

    return loop_group_create(&group, &conf);
}

static void nothing(void *arg)
{
    (void)arg;
}

START_TEST(a_new_group_has_its_loops_and_no_thread)
{
    unsigned before = process_descriptors();

    ck_assert_int_eq(create(5), 0);
    ck_assert_uint_eq(loop_group_size(group), 5);
    UNTIL(process_loops() == 0);
    ck_assert_uint_ge(process_descriptors(), before + 5 * 2); /* epoll and eventfd */
    loop_group_destroy(group);
    ck_assert_uint_eq(process_descriptors(), before);
}
END_TEST

START_TEST(loops_are_named_by_group_pool_and_number)
{
    ck_assert_int_eq(create(3), 0);
    ck_assert_str_eq(loop_name(loop_group_at(group, 0)), "work-2-1");
    ck_assert_str_eq(loop_name(loop_group_at(group, 1)), "work-2-2");
    ck_assert_str_eq(loop_name(loop_group_at(group, 2)), "work-2-3");
    loop_group_destroy(group);
}
END_TEST

START_TEST(each_loop_starts_with_its_own_first_task)
{
    ck_assert_int_eq(create(4), 0);
    for (unsigned i = 0; i < 3; i++) {
        struct loop *next = loop_group_next(group);

        ck_assert_ptr_eq(next, loop_group_at(group, i));
        loop_runner_call(next, nothing, NULL);
        UNTIL(process_loops() == i + 1);
    }
    ck_assert_int_eq(loop_state(loop_group_at(group, 3)), LOOP_NOT_STARTED);
    loop_group_stop(group, 0, NS_PER_S);
    loop_group_join(group);
    UNTIL(process_loops() == 0);
    loop_group_destroy(group);
}
END_TEST

START_TEST(stopping_ends_started_and_unstarted_loops_alike)
{
    ck_assert_int_eq(create(3), 0);
    loop_runner_call(loop_group_at(group, 1), nothing, NULL);
    loop_group_stop(group, 0, NS_PER_S);
    loop_group_join(group);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_eq(loop_state(loop_group_at(group, i)), LOOP_TERMINATED);
    ck_assert_ptr_null(loop_group_next(group));
    loop_group_destroy(group);
}
END_TEST

START_TEST(when_one_loop_cannot_be_made_none_is)
{
    unsigned before = process_descriptors();

    process_allow_descriptors((unsigned)_i);
    ck_assert_int_eq(create(10), -EMFILE);
    process_allow_any_descriptors();
    ck_assert_uint_eq(process_descriptors(), before);
    UNTIL(process_loops() == 0);
}
END_TEST

START_TEST(destroying_none_is_allowed)
{
    loop_group_destroy(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine/loop_group");
    TCase *tc = suite_group(suite, "loop group");

    tcase_add_test(tc, a_new_group_has_its_loops_and_no_thread);
    tcase_add_test(tc, loops_are_named_by_group_pool_and_number);
    tcase_add_test(tc, each_loop_starts_with_its_own_first_task);
    tcase_add_test(tc, stopping_ends_started_and_unstarted_loops_alike);
    tcase_add_loop_test(tc, when_one_loop_cannot_be_made_none_is, 0, 20);
    tcase_add_test(tc, destroying_none_is_allowed);
    return suite_run(suite);
}
