/* base/list: order, removal, and the question a node can answer. */
#include <check.h>
#include <stdlib.h>

#include "base/list.h"

struct item {
    int number;
    struct list link;
};

static struct list items;
static struct item one = {.number = 1}, two = {.number = 2}, three = {.number = 3};

static void setup(void)
{
    list_init(&items);
    list_append(&items, &one.link);
    list_append(&items, &two.link);
    list_append(&items, &three.link);
}

/* The numbers on the list as decimal digits, read along the next pointers. */
static int read_forward(void)
{
    int digits = 0;

    list_for_each (node, &items)
        digits = digits * 10 + LIST_ENTRY(node, struct item, link)->number;
    return digits;
}

/* The same along the prev pointers. */
static int read_backward(void)
{
    int digits = 0;

    for (struct list *node = items.prev; node != &items; node = node->prev)
        digits = digits * 10 + LIST_ENTRY(node, struct item, link)->number;
    return digits;
}

START_TEST(a_new_list_is_empty)
{
    struct list list;

    list_init(&list);
    ck_assert(list_empty(&list));
}
END_TEST

START_TEST(nodes_keep_the_order_they_were_appended_in)
{
    ck_assert(!list_empty(&items));
    ck_assert_int_eq(read_forward(), 123);
    ck_assert_int_eq(read_backward(), 321);
    ck_assert_ptr_eq(LIST_FIRST(&items, struct item, link), &one);
}
END_TEST

START_TEST(the_nodes_of_another_list_come_behind_the_others)
{
    struct list others;

    list_init(&others);
    list_append_all(&items, &others);
    ck_assert_int_eq(read_forward(), 123);
    list_remove(&one.link);
    list_append_all(&others, &items);
    ck_assert(list_empty(&items));
    list_append(&items, &one.link);
    list_append_all(&items, &others);
    ck_assert(list_empty(&others));
    ck_assert_int_eq(read_forward(), 123);
    ck_assert_int_eq(read_backward(), 321);
}
END_TEST

START_TEST(a_removed_node_leaves_its_neighbours_linked)
{
    list_remove(&two.link);
    ck_assert_int_eq(read_forward(), 13);
    ck_assert_int_eq(read_backward(), 31);
    list_remove(&one.link);
    list_remove(&three.link);
    ck_assert(list_empty(&items));
}
END_TEST

START_TEST(a_removed_node_is_on_no_list)
{
    ck_assert(!list_empty(&two.link));
    list_remove(&two.link);
    ck_assert(list_empty(&two.link));
}
END_TEST

START_TEST(removing_twice_is_harmless)
{
    list_remove(&two.link);
    list_remove(&two.link);
    ck_assert_int_eq(read_forward(), 13);
    ck_assert_int_eq(read_backward(), 31);
}
END_TEST

START_TEST(a_removed_node_can_be_appended_again)
{
    list_remove(&one.link);
    list_append(&items, &one.link);
    ck_assert_int_eq(read_forward(), 231);
    ck_assert_int_eq(read_backward(), 132);
}
END_TEST

START_TEST(a_safe_walk_may_remove_each_node_it_visits)
{
    int visited = 0;

    list_for_each_safe (node, &items) {
        list_remove(node);
        visited++;
    }
    ck_assert_int_eq(visited, 3);
    ck_assert(list_empty(&items));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("base/list");
    TCase *tc = tcase_create("list");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, a_new_list_is_empty);
    tcase_add_test(tc, nodes_keep_the_order_they_were_appended_in);
    tcase_add_test(tc, the_nodes_of_another_list_come_behind_the_others);
    tcase_add_test(tc, a_removed_node_leaves_its_neighbours_linked);
    tcase_add_test(tc, a_removed_node_is_on_no_list);
    tcase_add_test(tc, removing_twice_is_harmless);
    tcase_add_test(tc, a_removed_node_can_be_appended_again);
    tcase_add_test(tc, a_safe_walk_may_remove_each_node_it_visits);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
